package io.hawser.broker.token;

import io.hawser.broker.machine.PrivateFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.HexFormat;

/** Generates secrets. The broker logs none of them. */
public final class Secrets {
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final int SECRET_BYTES = 32;
    private static final int KEY_ID_BYTES = 8;

    private Secrets() {
    }

    /** Random bytes. */
    public static byte[] random(int bytes) {
        byte[] random = new byte[bytes];
        RANDOM.nextBytes(random);
        return random;
    }

    /** Public part of a new token, long enough that a repetition is practically impossible. */
    public static String keyId() {
        return HexFormat.of().formatHex(random(KEY_ID_BYTES));
    }

    /** Creates the admin token with mode 0600; does nothing when the file exists. */
    public static void createAdminToken(Path path) throws IOException {
        if (!Files.exists(path)) {
            PrivateFile.write(path, text() + "\n");
        }
    }

    /** A new secret as a text of 43 characters. */
    public static String text() {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(random(SECRET_BYTES));
    }
}
