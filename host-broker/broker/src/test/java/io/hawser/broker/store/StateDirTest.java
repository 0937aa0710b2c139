package io.hawser.broker.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.broker.model.StartException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StateDirTest {
    @TempDir
    private Path folder;

    private static String refusal(Path path) {
        return assertThrows(StartException.class, () -> StateDir.open(path)).getMessage();
    }

    @Test
    void shouldMakeAFolderForItsUserAlone() throws IOException {
        Path state = folder.resolve("a/state");
        try (StateDir opened = StateDir.open(state)) {
            assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(state)));
            assertTrue(refusal(state).contains("another broker uses the state folder"));
            assertEquals(state.resolve("x"), opened.resolve("x"));
        }
    }

    @Test
    void shouldRefuseAFolderThatAnotherUserCanChange() throws IOException {
        Path state = Files.createDirectory(folder.resolve("state"));
        for (String mode : new String[] {"rwxrwx---", "rwx----w-", "rwxrwxrwx"}) {
            Files.setPosixFilePermissions(state, PosixFilePermissions.fromString(mode));
            assertTrue(refusal(state).contains("nobody else may write to it"), mode);
        }
        Files.setPosixFilePermissions(state, PosixFilePermissions.fromString("rwxr-xr-x"));
        StateDir.open(state).close();
    }

    @Test
    void shouldRefuseAFolderOfAnotherUser() throws IOException {
        Path state = Files.createDirectory(folder.resolve("state"));
        assumeTrue(Files.getAttribute(state, "unix:uid").equals(0),
            "SKIPPED: only root can make another user's folder");
        Files.setAttribute(state, "unix:uid", 4711);
        assertTrue(refusal(state).contains("owner=4711 user=0"));
    }
}
