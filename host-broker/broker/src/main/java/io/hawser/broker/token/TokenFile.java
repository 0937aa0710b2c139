package io.hawser.broker.token;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jboss.logging.Logger;

/**
 * The tokens of guests, one a line: {@code keyId:hexSha256(secret):vgpu}; empty lines and those that begin with # are
 * left out. Read again when the file has changed. A changed file with a bad line is not taken: the tokens before it
 * stay, and the log names the line. A file that is gone has no tokens. Thread-safe.
 */
public final class TokenFile {
    private static final Logger LOG = Logger.getLogger(TokenFile.class);
    /** A token file; stops a wrong path from filling the memory. */
    private static final long MAX_FILE_BYTES = 4 * 1024 * 1024;
    private static final Pattern KEY_ID = Pattern.compile("[A-Za-z0-9_-]{1,64}");
    private static final Pattern DIGEST = Pattern.compile("[0-9a-f]{64}");
    private static final Pattern VGPU = Pattern.compile("[A-Za-z0-9_.-]{1,64}");

    private final Path path;
    private Object version;
    private Map<String, Token> tokens = Map.of();
    private String problem = "";

    /**
     * A token as it is stored.
     *
     * @param keyId its public part.
     * @param key SHA-256 of its secret, 32 bytes.
     * @param vgpu the share that it opens.
     */
    public record Token(String keyId, byte[] key, String vgpu) {
        @Override
        public String toString() {
            return "Token[" + keyId + " for " + vgpu + "]";
        }
    }

    /**
     * Reads the file.
     *
     * @throws IOException when it cannot be read or a line is bad; the message names file and line, never a token.
     */
    public TokenFile(Path path) throws IOException {
        this.path = path;
        Object seen = versionOf(path);
        tokens = read(path);
        version = seen;
    }

    /** The token of a key id, after a look whether the file has changed. */
    public synchronized Optional<Token> find(String keyId) {
        refresh();
        return Optional.ofNullable(tokens.get(keyId));
    }

    /** Why the file as it is now is not in use; empty when it is. */
    public synchronized String problem() {
        refresh();
        return problem;
    }

    private void refresh() {
        try {
            Object seen = versionOf(path);
            if (seen.equals(version)) {
                return;
            }
            // Taken first: a change while it is read is seen by the next look.
            version = seen;
            tokens = read(path);
            problem = "";
            LOG.infof("token file read: path=%s tokens=%d", path, tokens.size());
        } catch (NoSuchFileException e) {
            tokens = Map.of();
            tell("the token file is gone: path=" + path);
        } catch (IOException e) {
            tell(e.getMessage());
        }
    }

    private void tell(String what) {
        if (!what.equals(problem)) {
            problem = what;
            LOG.errorf("%s", what);
        }
    }

    /** What changes when the file does; the time alone is too coarse for two changes in a row. */
    private static Object versionOf(Path path) throws IOException {
        Map<String, Object> now = Files.readAttributes(path, "unix:ino,size,lastModifiedTime,ctime");
        return Map.copyOf(now);
    }

    private static Map<String, Token> read(Path path) throws IOException {
        if (Files.size(path) > MAX_FILE_BYTES) {
            throw new IOException("a token file must not exceed its limit: path=" + path + " maxBytes="
                + MAX_FILE_BYTES);
        }
        warnWhenOpen(path);
        List<String> lines = Files.readAllLines(path);
        Map<String, Token> read = new HashMap<>();
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i).strip();
            if (line.isEmpty() || line.startsWith("#")) {
                continue;
            }
            String[] parts = line.split(":", -1);
            if (parts.length != 3 || !KEY_ID.matcher(parts[0]).matches() || !DIGEST.matcher(parts[1]).matches()
                || !VGPU.matcher(parts[2]).matches()) {
                // Not quoted: a clear token put here by mistake would end up in the log.
                throw new IOException("a line must be keyId:hexSha256(secret):vgpu: path=" + path + " line=" + (i + 1));
            }
            Token token = new Token(parts[0], HexFormat.of().parseHex(parts[1]), parts[2]);
            if (read.put(parts[0], token) != null) {
                throw new IOException("a key id must not be there twice: path=" + path + " line=" + (i + 1));
            }
        }
        return Map.copyOf(read);
    }

    private static void warnWhenOpen(Path path) throws IOException {
        int mode = (int) Files.getAttribute(path, "unix:mode", LinkOption.NOFOLLOW_LINKS);
        if ((mode & 077) != 0 && !Files.isSymbolicLink(path)) {
            LOG.warnf("others can reach the token file: path=%s mode=%o (chmod 600)", path, mode & 0777);
        }
    }
}
