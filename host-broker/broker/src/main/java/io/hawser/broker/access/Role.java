package io.hawser.broker.access;

import java.util.Locale;
import java.util.Optional;

/** The rights of a sender; each role includes the rights of the roles before it. */
public enum Role {
    /** Reads the broker's state. */
    VIEWER,
    /** Ends sessions; creates, changes and deletes vGPUs, tokens and regions. */
    OPERATOR,
    /** Reads the audit log. */
    ADMIN;

    /** Whether this role has all rights of the other. */
    public boolean includes(Role other) {
        return compareTo(other) >= 0;
    }

    /** The value in the REST interface and the users file. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The role with a label; empty when there is none. */
    public static Optional<Role> of(String label) {
        for (Role role : values()) {
            if (role.label().equals(label)) {
                return Optional.of(role);
            }
        }
        return Optional.empty();
    }
}
