package io.hawser.broker.machine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PrivateFileTest {
    private static final String SECRET = "a secret";
    private static final int LIMIT = 100;

    @TempDir
    private Path folder;

    private Path file() throws IOException {
        Path file = folder.resolve("secret");
        PrivateFile.write(file, SECRET);
        return file;
    }

    private static String refusal(Path file) {
        String refusal = assertThrows(IOException.class, () -> PrivateFile.read(file, LIMIT)).getMessage();
        assertFalse(refusal.contains(SECRET), refusal);
        return refusal;
    }

    @Test
    void shouldReadWhatNobodyElseCanReach() throws IOException {
        Path file = file();
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
        assertEquals(SECRET, PrivateFile.read(file, LIMIT));
        assertEquals(SECRET, PrivateFile.read(Files.createSymbolicLink(folder.resolve("link"), file), LIMIT));
        for (String mode : new String[] {"rw-r-----", "rw--w----", "rw----r--", "rw-----w-"}) {
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
            assertTrue(refusal(file).contains("nobody else may reach the file"), mode);
        }
    }

    @Test
    void shouldRefuseAFileOfAnotherUser() throws IOException {
        Path file = file();
        assumeTrue(Files.getAttribute(file, "unix:uid").equals(0),
            "SKIPPED: only root can make a file of another user");
        Files.setAttribute(file, "unix:uid", 4711);
        assertTrue(refusal(file).contains("of the broker's user or root"));
    }

    @Test
    void shouldRefuseWhatIsNoFileOrTooLong() throws Exception {
        Path file = folder.resolve("secret");
        assertThrows(IOException.class, () -> PrivateFile.read(file, LIMIT));
        PrivateFile.write(file, "x".repeat(LIMIT + 1));
        assertTrue(refusal(file).contains("maxBytes=100"));
        Files.delete(file);
        assertEquals(0, new ProcessBuilder("mkfifo", "-m", "600", file.toString()).inheritIO().start().waitFor());
        assertTrue(refusal(file).contains("must be a file"));
    }
}
