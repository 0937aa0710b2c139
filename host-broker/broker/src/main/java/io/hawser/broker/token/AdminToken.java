package io.hawser.broker.token;

import io.hawser.broker.machine.PrivateFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;

/** The token of the REST interface: the only line of a file that the first start creates. */
public final class AdminToken {
    private static final String SCHEME = "Bearer ";
    private static final long MAX_FILE_BYTES = 4096;

    private final byte[] expected;

    /** Reads the token; creates a missing one first. */
    public AdminToken(Path path) throws IOException {
        Secrets.createAdminToken(path);
        String token = PrivateFile.read(path, MAX_FILE_BYTES).strip();
        if (token.isEmpty()) {
            throw new IOException("the admin token must not be empty: path=" + path + " (delete it for a new one)");
        }
        expected = token.getBytes(StandardCharsets.UTF_8);
    }

    /**
     * Whether an Authorization header (null when the request has none) contains the token. Takes the same time for
     * every wrong token.
     */
    public boolean matches(String authorization) {
        if (authorization == null || !authorization.regionMatches(true, 0, SCHEME, 0, SCHEME.length())) {
            return false;
        }
        byte[] given = authorization.substring(SCHEME.length()).strip().getBytes(StandardCharsets.UTF_8);
        return MessageDigest.isEqual(expected, given);
    }
}
