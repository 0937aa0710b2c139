package io.hawser.broker.access;

import java.util.Locale;

/**
 * An identified sender.
 *
 * @param name of the user, of the token's subject, or {@code admin.token}.
 * @param role its rights.
 * @param via the way of its identification.
 */
public record Identity(String name, Role role, Via via) {
    /** The name of a sender with the admin token. */
    public static final String ADMIN_TOKEN = "admin.token";
    /** A sender that reads over the loopback interface, where the settings permit it. */
    public static final Identity LOOPBACK = new Identity("loopback", Role.VIEWER, Via.LOOPBACK);

    /** The ways of identification. */
    public enum Via {
        /** The admin token of the state folder. */
        TOKEN,
        /** Name and password with the request. */
        PASSWORD,
        /** The cookie of a login. */
        COOKIE,
        /** A token of the trusted issuer. */
        OIDC,
        /** None: {@code hawser.http.loopback-read}. */
        LOOPBACK;

        /** The value in the REST interface. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }
}
