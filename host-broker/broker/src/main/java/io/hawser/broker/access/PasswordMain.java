package io.hawser.broker.access;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** {@code hawser-broker --set-password NAME ROLE} and {@code --remove-user NAME}; starts fast, without Quarkus. */
public final class PasswordMain {
    private PasswordMain() {
    }

    /**
     * Writes the users file. Ends the process with 1 on failure, and with 2 for wrong arguments.
     *
     * @param arguments {@code set NAME ROLE}, with the password as the only line of the standard input, or {@code
     * remove NAME}.
     */
    public static void main(String[] arguments) {
        try {
            Path stateDir = stateDir();
            if (arguments.length == 3 && arguments[0].equals("set")) {
                set(stateDir, arguments[1], arguments[2]);
            } else if (arguments.length == 2 && arguments[0].equals("remove")) {
                remove(stateDir, arguments[1]);
            } else {
                end(2, "--set-password NAME viewer|operator|admin, or --remove-user NAME");
            }
        } catch (IOException | IllegalArgumentException e) {
            end(1, e.getMessage());
        }
    }

    private static void set(Path stateDir, String name, String label) throws IOException {
        Optional<Role> role = Role.of(label);
        if (role.isEmpty() || !UsersFile.isName(name)) {
            end(2, "a user needs a name of letters, digits and _.@-, and one of the roles viewer, operator and admin");
            return;
        }
        // Not an argument: all users of the machine can read those.
        if (System.console() != null && System.console().isTerminal()) {
            char[] typed = System.console().readPassword("Password of %s: ", name);
            write(stateDir, name, role.get(), typed == null ? new char[0] : typed);
            return;
        }
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line = input.readLine();
        write(stateDir, name, role.get(), line == null ? new char[0] : line.toCharArray());
    }

    private static void write(Path stateDir, String name, Role role, char[] password) throws IOException {
        Path path = stateDir.resolve("users");
        boolean there = UsersFile.change(path, name, new UsersFile.User(name, role, Passwords.store(password)));
        System.out.println((there ? "changed: " : "created: ") + name + " " + role.label() + " in " + path);
    }

    private static void remove(Path stateDir, String name) throws IOException {
        Path path = stateDir.resolve("users");
        if (!UsersFile.change(path, name, null)) {
            end(1, "the user does not exist: " + name);
        }
        System.out.println("removed: " + name + " from " + path);
    }

    private static Path stateDir() throws IOException {
        String environment = System.getenv().getOrDefault("HAWSER_STATE_DIR",
            System.getProperty("user.home") + "/.local/state/hawser");
        Path path = Path.of(System.getProperty("hawser.state-dir", environment));
        if (!Files.isDirectory(path)) {
            throw new IOException("the state folder does not exist: hawser.state-dir=" + path
                + " (the broker creates it at its first start)");
        }
        return path;
    }

    private static void end(int status, String message) {
        System.err.println("hawser-broker: " + message);
        System.exit(status);
    }
}
