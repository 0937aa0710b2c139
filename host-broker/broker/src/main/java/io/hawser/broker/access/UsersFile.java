package io.hawser.broker.access;

import io.hawser.broker.machine.PrivateFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jboss.logging.Logger;

/**
 * The users of the REST interface, one per line: {@code name:role:hash}. Empty lines and lines that begin with # are
 * ignored. Each search reads the file again if it has changed. A changed file with a bad line, or that other users of
 * the machine can access, is rejected: the previous users stay, and the log names the line. A missing file has no
 * users. Thread-safe; reads the file system, so never on an event loop.
 */
public final class UsersFile {
    private static final Logger LOG = Logger.getLogger(UsersFile.class);
    private static final String HEADER = "# name:role:hash, one user a line; by hawser-broker --set-password\n";
    /** Stops a wrong path from filling the memory. */
    private static final long MAX_FILE_BYTES = 1024 * 1024;
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}");

    private final Path path;
    private Object version = "";
    private Map<String, User> users = Map.of();
    private String problem = "";

    /**
     * A stored user.
     *
     * @param hash of the password, in the form of {@link Passwords}.
     */
    public record User(String name, Role role, String hash) {
        @Override
        public String toString() {
            return "User[" + name + ", " + role.label() + "]";
        }
    }

    /**
     * Reads the file if it exists.
     *
     * @throws IOException when it is invalid; the message names file and line, never a hash.
     */
    public UsersFile(Path path) throws IOException {
        this.path = path;
        if (Files.exists(path)) {
            version = versionOf(path);
            users = read(path);
        }
    }

    /** Whether a user can have this name. */
    public static boolean isName(String name) {
        return NAME.matcher(name).matches();
    }

    /** The user of a name; reads the file again if it has changed. */
    public synchronized Optional<User> find(String name) {
        refresh();
        return Optional.ofNullable(users.get(name));
    }

    /** Why the present file is rejected; empty when it is in use. */
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
            // Set before reading: the next check then sees a change during the read.
            version = seen;
            users = read(path);
            problem = "";
            LOG.infof("users file read: path=%s users=%d", path, users.size());
        } catch (NoSuchFileException e) {
            users = Map.of();
            version = "";
            problem = "";
        } catch (IOException e) {
            if (!e.getMessage().equals(problem)) {
                problem = e.getMessage();
                LOG.errorf("%s", problem);
            }
        }
    }

    /** Attributes that change with the file; the times alone are too coarse for two changes in a row. */
    private static Object versionOf(Path path) throws IOException {
        return Map.copyOf(Files.readAttributes(path, "unix:ino,size,mode,lastModifiedTime,ctime"));
    }

    /**
     * Adds, changes or removes a user in the file; a running broker reads it afterwards.
     *
     * @param user the user to write; null to remove the name.
     * @return whether the file had the name before.
     */
    public static boolean change(Path path, String name, User user) throws IOException {
        Map<String, User> all = Files.exists(path) ? read(path) : new LinkedHashMap<>();
        boolean there = all.remove(name) != null;
        if (user != null) {
            all.put(name, user);
        }
        StringBuilder text = new StringBuilder(HEADER);
        all.values().forEach(u -> text.append(u.name()).append(':').append(u.role().label()).append(':')
            .append(u.hash()).append('\n'));
        PrivateFile.write(path, text.toString());
        return there;
    }

    private static Map<String, User> read(Path path) throws IOException {
        List<String> lines = PrivateFile.read(path, MAX_FILE_BYTES).lines().toList();
        Map<String, User> read = new LinkedHashMap<>();
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i).strip();
            if (line.isEmpty() || line.startsWith("#")) {
                continue;
            }
            String[] parts = line.split(":", -1);
            Optional<Role> role = parts.length == 3 ? Role.of(parts[1]) : Optional.empty();
            if (role.isEmpty() || !isName(parts[0]) || !Passwords.isStored(parts[2])) {
                // Not quoted: the log would show a clear password that was put here by mistake.
                throw new IOException("a line must be name:role:hash: path=" + path + " line=" + (i + 1)
                    + " (hawser-broker --set-password NAME ROLE)");
            }
            if (read.put(parts[0], new User(parts[0], role.get(), parts[2])) != null) {
                throw new IOException("each user must have only one line: path=" + path + " line=" + (i + 1));
            }
        }
        return read;
    }
}
