package io.hawser.shm.layout;

import java.util.Locale;

/** Spelling of names in the generated files. */
final class Names {
    private Names() {
    }

    /** {@code clientNonce} becomes {@code CLIENT_NONCE}. */
    static String upper(String name) {
        return name.replaceAll("([a-z0-9])([A-Z])", "$1_$2").toUpperCase(Locale.ROOT);
    }

    /** {@code clientNonce} becomes {@code client_nonce}. */
    static String snake(String name) {
        return lower(upper(name));
    }

    /** {@code HEADER} becomes {@code header}. */
    static String lower(String name) {
        return name.toLowerCase(Locale.ROOT);
    }
}
