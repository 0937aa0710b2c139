package io.hawser.broker.access;

import java.util.Locale;
import java.util.Optional;

/** What someone may do; each role may do what those before it may. */
public enum Role {
    /** Reads. */
    VIEWER,
    /** Ends sessions, makes and changes vGPUs, tokens and regions. */
    OPERATOR,
    /** Reads the audit log. */
    ADMIN;

    /** Whether whoever has this role may do what asks for the other. */
    public boolean includes(Role other) {
        return compareTo(other) >= 0;
    }

    /** As interface and users file have it. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The role of a label; empty when there is none. */
    public static Optional<Role> of(String label) {
        for (Role role : values()) {
            if (role.label().equals(label)) {
                return Optional.of(role);
            }
        }
        return Optional.empty();
    }
}
