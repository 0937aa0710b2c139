package io.hawser.broker.access;

import java.util.Locale;

/**
 * Who asks.
 *
 * @param name of the user, of the token's subject, or {@code admin.token}.
 * @param role what they may do.
 * @param via how they have shown who they are.
 */
public record Identity(String name, Role role, Via via) {
    /** Name of whoever has the admin token. */
    public static final String ADMIN_TOKEN = "admin.token";
    /** Whoever reads from the loopback interface where settings allow that. */
    public static final Identity LOOPBACK = new Identity("loopback", Role.VIEWER, Via.LOOPBACK);

    /** How someone has shown who they are. */
    public enum Via {
        /** The admin token of the state folder. */
        TOKEN,
        /** Name and password with the request. */
        PASSWORD,
        /** A login before. */
        COOKIE,
        /** A token of the issuer that settings trust. */
        OIDC,
        /** Not at all: {@code hawser.http.loopback-read}. */
        LOOPBACK;

        /** As the interface has it. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }
}
