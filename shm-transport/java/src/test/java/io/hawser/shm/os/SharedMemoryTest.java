package io.hawser.shm.os;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.ring.RingCorruptException;
import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.RingWriter;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SharedMemoryTest {
    @Test
    void shouldShowTheSameBytesInTwoMappingsBeyondTwoGibibytes() throws IOException {
        long bytes = (3L << 30) + 4096;
        int fd = Descriptors.memory("hawser-test", bytes);
        try (SharedMemory one = SharedMemory.map(fd, bytes, 0); SharedMemory two = SharedMemory.map(fd, bytes, 0)) {
            assertEquals(bytes, Descriptors.fileBytes(fd));
            assertNotEquals(one.address(), two.address());
            one.memory().set(ValueLayout.JAVA_LONG, bytes - 8, 42);
            assertEquals(42, two.memory().get(ValueLayout.JAVA_LONG, bytes - 8));
            assertEquals(0, two.memory().get(ValueLayout.JAVA_LONG, bytes - 16));
        } finally {
            Descriptors.close(fd);
        }
    }

    @Test
    void shouldTellALengthWithoutSeeking(@TempDir Path folder) throws IOException {
        // For a PCI device's resource, seeking reports 0 (Linux 5.12 to 6.6). Here an unchanged file offset shows that
        // no seek happens.
        int fd = Descriptors.create(folder.resolve("file"));
        try {
            Descriptors.resize(fd, (3L << 30) + 5);
            assertEquals((3L << 30) + 5, Descriptors.fileBytes(fd));
            assertEquals("pos:\t0", Files.readAllLines(Path.of("/proc/self/fdinfo/" + fd)).getFirst());
        } finally {
            Descriptors.close(fd);
        }
        assertThrows(IOException.class, () -> Descriptors.fileBytes(-1));
    }

    @Test
    void shouldMapWhereWantedAndElsewhereWhenThatIsTaken() throws IOException {
        int fd = Descriptors.memory("hawser-test", 1 << 20);
        try {
            long wanted;
            try (SharedMemory probe = SharedMemory.map(fd, 1 << 20, 0)) {
                wanted = probe.address();
                try (SharedMemory other = SharedMemory.map(fd, 1 << 20, wanted)) {
                    assertNotEquals(wanted, other.address());
                    other.memory().set(ValueLayout.JAVA_INT, 0, 5);
                    assertEquals(5, probe.memory().get(ValueLayout.JAVA_INT, 0));
                }
            }
            // An address far below the kernel's choices, so that no other thread's mapping gets it.
            long lonely = 0x2000_0000_0000L;
            try (SharedMemory there = SharedMemory.map(fd, 1 << 20, lonely)) {
                assertEquals(lonely, there.address());
            }
            for (long bad : new long[] {lonely + 1, 4096, -4096, Long.MIN_VALUE, 1L << 47, (1L << 47) - 4096}) {
                try (SharedMemory elsewhere = SharedMemory.map(fd, 1 << 20, bad)) {
                    assertNotEquals(bad, elsewhere.address());
                }
            }
        } finally {
            Descriptors.close(fd);
        }
    }

    @Test
    void shouldRefuseMoreThanTheFileHas() throws IOException {
        int fd = Descriptors.memory("hawser-test", 4096);
        try {
            assertThrows(IOException.class, () -> SharedMemory.map(fd, 4097, 0));
            assertThrows(IOException.class, () -> SharedMemory.map(fd, 0, 0));
            assertThrows(IOException.class, () -> SharedMemory.map(fd, -1, 0));
            assertThrows(IOException.class, () -> SharedMemory.map(-1, 4096, 0));
        } finally {
            Descriptors.close(fd);
        }
    }

    @Test
    void shouldThrowAtAnAccessAfterTheEnd() throws IOException {
        int fd = Descriptors.memory("hawser-test", 4096);
        SharedMemory shared = SharedMemory.map(fd, 4096, 0);
        Descriptors.close(fd);
        MemorySegment memory = shared.memory();
        memory.set(ValueLayout.JAVA_INT, 0, 1);
        shared.close();
        assertThrows(IllegalStateException.class, () -> memory.get(ValueLayout.JAVA_INT, 0));
    }

    @Test
    void shouldThrowAndNotEndTheProcessWhenTheFileWasCutShort(@TempDir Path folder) throws Exception {
        int fd = Descriptors.create(folder.resolve("region"));
        Descriptors.resize(fd, 1 << 20);
        try (SharedMemory shared = SharedMemory.map(fd, 1 << 20, 0)) {
            MemorySegment memory = shared.memory();
            RingWriter writer = new RingWriter(memory, 4096, 4096, 0, 64);
            RingReader reader = new RingReader(memory, 4096, 4096, 0, 64);
            MemorySegment bytes = MemorySegment.ofArray(new byte[64]);
            for (int i = 0; i < 50_000; i++) { // long enough for JIT-compiled code to meet the fault
                exchange(writer, reader, bytes);
            }
            Descriptors.resize(fd, 0);
            assertThrows(InternalError.class, () -> exchange(writer, reader, bytes));
            assertThrows(InternalError.class, () -> memory.asSlice(0, 4096).fill((byte) 0));
            assertThrows(IllegalStateException.class, () -> Futex.await(memory, 128, 0, 1));
            Descriptors.resize(fd, 1 << 20);
            // The mapping works again, but with new pages: the former head and tail are gone.
            assertThrows(RingCorruptException.class, reader::available);
        } finally {
            Descriptors.close(fd);
        }
    }

    private static void exchange(RingWriter writer, RingReader reader, MemorySegment bytes)
        throws RingCorruptException {
        writer.put(bytes, 0, Math.min(64, writer.room()));
        writer.commit();
        reader.takeAvailable(bytes, 0, 64);
        reader.release();
    }

    @Test
    void shouldSealAnonymousMemoryAgainstAnotherLength() throws IOException {
        int fd = Descriptors.memory("hawser-test", 8192);
        try {
            assertThrows(IOException.class, () -> Descriptors.resize(fd, 4096));
            assertThrows(IOException.class, () -> Descriptors.resize(fd, 16384));
            assertEquals(8192, Descriptors.fileBytes(fd));
        } finally {
            Descriptors.close(fd);
        }
    }

    @Test
    void shouldMakeAFileForItsOwnerOnlyAndNeverTakeOneThatExists(@TempDir Path folder) throws IOException {
        Path path = folder.resolve("region");
        int fd = Descriptors.create(path);
        try {
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
            Descriptors.resize(fd, 4096);
            Descriptors.reserve(fd, 8192);
            assertEquals(8192, Files.size(path));
            assertThrows(IOException.class, () -> Descriptors.create(path));
            Path link = Files.createSymbolicLink(folder.resolve("link"), folder.resolve("nothing"));
            assertThrows(IOException.class, () -> Descriptors.create(link));
            int again = Descriptors.open(path);
            assertEquals(8192, Descriptors.fileBytes(again));
            Descriptors.close(again);
        } finally {
            Descriptors.close(fd);
        }
        IOException missing = assertThrows(IOException.class, () -> Descriptors.open(folder.resolve("missing")));
        assertTrue(missing.getMessage().contains("errno=2 (No such file"), missing.getMessage());
    }

    @Test
    void shouldSeeTheLockOfAnotherOpenFile(@TempDir Path folder) throws IOException {
        Path path = folder.resolve("region");
        int holder = Descriptors.create(path);
        int looker = Descriptors.open(path);
        assertFalse(FileLocks.isLocked(looker, 3));
        assertTrue(FileLocks.tryLock(holder, 3));
        assertTrue(FileLocks.isLocked(looker, 3));
        assertFalse(FileLocks.isLocked(looker, 2));
        assertFalse(FileLocks.isLocked(looker, 4));
        assertFalse(FileLocks.tryLock(looker, 3));
        FileLocks.unlock(holder, 3);
        assertFalse(FileLocks.isLocked(looker, 3));
        assertTrue(FileLocks.tryLock(holder, 0));
        assertTrue(FileLocks.isLocked(looker, 0));
        Descriptors.close(holder);
        assertFalse(FileLocks.isLocked(looker, 0));
        Descriptors.close(looker);
        assertThrows(IOException.class, () -> FileLocks.isLocked(-1, 0));
    }
}
