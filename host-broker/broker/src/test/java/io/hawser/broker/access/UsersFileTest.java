package io.hawser.broker.access;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.machine.PrivateFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class UsersFileTest {
    private static final String HASH = "$2a$10$" + "abcdefghijklmnopqrstuu" + "0123456789012345678901234567890";

    @TempDir
    Path folder;

    @Test
    void shouldHaveNoUsersWithoutAFile() throws IOException {
        UsersFile users = new UsersFile(folder.resolve("users"));
        assertTrue(users.find("ann").isEmpty());
        assertEquals("", users.problem());
    }

    @Test
    void shouldReadWhatItWritesAndSeeChanges() throws IOException {
        Path path = folder.resolve("users");
        assertFalse(UsersFile.change(path, "ann", new UsersFile.User("ann", Role.OPERATOR, HASH)));
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
        UsersFile users = new UsersFile(path);
        assertEquals(Role.OPERATOR, users.find("ann").orElseThrow().role());
        assertFalse(UsersFile.change(path, "bob", new UsersFile.User("bob", Role.VIEWER, HASH)));
        assertTrue(UsersFile.change(path, "ann", new UsersFile.User("ann", Role.ADMIN, HASH)));
        assertEquals(Role.ADMIN, users.find("ann").orElseThrow().role());
        assertEquals(Role.VIEWER, users.find("bob").orElseThrow().role());
        assertTrue(UsersFile.change(path, "ann", null));
        assertTrue(users.find("ann").isEmpty());
        Files.delete(path);
        assertTrue(users.find("bob").isEmpty(), "a deleted file must have no users");
    }

    @Test
    void shouldNotTakeAFileThatOthersCanReach() throws IOException {
        Path path = folder.resolve("users");
        UsersFile.change(path, "ann", new UsersFile.User("ann", Role.OPERATOR, HASH));
        UsersFile users = new UsersFile(path);
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-r--r--"));
        assertTrue(users.problem().contains("nobody else may reach the file"), users.problem());
        assertThrows(IOException.class, () -> new UsersFile(path));
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
        assertEquals("", users.problem());
    }

    @Test
    void shouldKeepTheUsersBeforeABadLineAndNotQuoteIt() throws IOException {
        Path path = folder.resolve("users");
        UsersFile.change(path, "ann", new UsersFile.User("ann", Role.OPERATOR, HASH));
        UsersFile users = new UsersFile(path);
        for (String bad : new String[] {"bob:viewer:secret-in-clear", "bob:root:" + HASH, "bob:viewer", "a/b:viewer:"
            + HASH, "bob:viewer:" + HASH.replace("$10$", "$31$"), "ann:viewer:" + HASH + "\nann:viewer:" + HASH}) {
            PrivateFile.write(path, bad + "\n");
            String problem = users.problem();
            assertTrue(problem.contains("line="), problem);
            assertFalse(problem.contains("secret"), problem);
            assertTrue(users.find("ann").isPresent(), "the users of the last valid file must stay");
            assertTrue(users.find("bob").isEmpty());
        }
    }
}
