package io.hawser.broker.token;

import io.hawser.shm.HandshakeProof;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.HexFormat;

/** Makes the secrets of a first start. None of them is ever logged. */
public final class Secrets {
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final int SECRET_BYTES = 32;
    private static final String KEY_ID = "default";

    private Secrets() {
    }

    /** Random bytes. */
    public static byte[] random(int bytes) {
        byte[] random = new byte[bytes];
        RANDOM.nextBytes(random);
        return random;
    }

    /**
     * Makes the token file with one token for the vGPU {@code default}, and the clear token in {@code clearPath}, both
     * with mode 0600; nothing when the token file is there.
     *
     * @return whether they were made.
     */
    public static boolean createTokens(Path tokenFile, Path clearPath) throws IOException {
        if (Files.exists(tokenFile)) {
            return false;
        }
        String secret = text();
        String digest = HexFormat.of().formatHex(HandshakeProof.key(secret));
        PrivateFile.write(clearPath, KEY_ID + "." + secret + "\n");
        PrivateFile.write(tokenFile, "# keyId:hexSha256(secret):vgpu, a token a line; read again when it changes\n"
            + KEY_ID + ":" + digest + ":default\n");
        return true;
    }

    /** Makes the admin token with mode 0600; nothing when it is there. */
    public static void createAdminToken(Path path) throws IOException {
        if (!Files.exists(path)) {
            PrivateFile.write(path, text() + "\n");
        }
    }

    private static String text() {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(random(SECRET_BYTES));
    }
}
