package io.hawser.ctl.cdi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class AccessListTest {
    private static final int USER = 54321;
    private static final int OTHER_USER = 12345;

    private Path file;

    /** Where regions are: each file system may lack such lists, but Linux's tmpfs has them. */
    @BeforeEach
    void makeFile() throws IOException {
        file = Files.createTempFile(Path.of("/dev/shm"), "hawser-test", "",
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    }

    @AfterEach
    void removeFile() throws IOException {
        Files.delete(file);
    }

    private String mode() throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
    }

    @Test
    void shouldGrantAndWithdrawOneUser() throws IOException {
        AccessList.grant(file, USER);
        assertTrue(AccessList.names(file, USER));
        assertFalse(AccessList.names(file, OTHER_USER));
        assertEquals("rw-rw----", mode(), "the mask stands in the group's place, and others have no right");
        AccessList.withdraw(file, USER);
        assertFalse(AccessList.names(file, USER));
        assertEquals("rw-------", mode());
    }

    @Test
    void shouldKeepTheOtherUsersAndTheGroup() throws IOException {
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r-----"));
        AccessList.grant(file, USER);
        AccessList.grant(file, OTHER_USER);
        AccessList.grant(file, USER);
        AccessList.withdraw(file, USER);
        assertTrue(AccessList.names(file, OTHER_USER));
        assertEquals("rw-rw----", mode());
        AccessList.withdraw(file, OTHER_USER);
        assertEquals("rw-r-----", mode());
    }

    @Test
    void shouldReportAMissingFile() {
        assertThrows(IOException.class, () -> AccessList.grant(Path.of("/dev/shm/hawser-test-none"), USER));
    }
}
