package io.hawser.broker.jail;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.config.ComputeCacheConfig;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.SystemCalls;
import io.quarkus.runtime.configuration.MemorySize;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CacheFolderTest {
    private static final long MAX_BYTES = 1 << 20;

    @TempDir
    Path root;

    private long keep(CacheFolder folder, String name, int bytes) throws IOException {
        int memory = (int) SystemCalls.memory("test");
        try {
            Files.write(Path.of("/proc/self/fd/" + memory), new byte[bytes]);
            return folder.keep(name, memory);
        } finally {
            Posix.close(memory);
        }
    }

    private int open(CacheFolder folder, String name) {
        return folder.open(name, descriptor -> descriptor > 2);
    }

    @Test
    void shouldRemoveWhatWasUsedLeastRecently() throws IOException {
        CacheFolder folder = new CacheFolder(root.resolve("a"), MAX_BYTES);
        for (int i = 0; i < 10; i++) {
            assertEquals(100_000, keep(folder, "file" + i, 100_000));
            Files.setLastModifiedTime(root.resolve("a/file" + i), FileTime.fromMillis(1_000_000L + i));
        }
        assertEquals(0, open(folder, "file0")); // used now
        assertEquals(100_000, keep(folder, "file10", 100_000));
        assertEquals(0, open(folder, "file0"));
        assertEquals(-SystemCalls.ENOENT, open(folder, "file1"));
        assertEquals(0, open(folder, "file9"));
        assertEquals(0, open(folder, "file10"));
        try (Stream<Path> files = Files.list(root.resolve("a"))) {
            assertTrue(files.mapToLong(file -> file.toFile().length()).sum() <= MAX_BYTES * 3 / 4);
        }
    }

    /** Also many tiny files stay within the limit, by which no worker fills the file system with names. */
    @Test
    void shouldCountABlockForEachFile() throws IOException {
        CacheFolder folder = new CacheFolder(root.resolve("a"), 64 << 10);
        for (int i = 0; i < 40; i++) {
            assertEquals(1, keep(folder, "file" + i, 1));
        }
        try (Stream<Path> files = Files.list(root.resolve("a"))) {
            assertTrue(files.count() <= 16);
        }
    }

    @Test
    void shouldKeepNoFileThatIsEmptyOrLargerThanAll() throws IOException {
        CacheFolder folder = new CacheFolder(root.resolve("a"), 1000);
        assertEquals(0, keep(folder, "empty", 0));
        assertEquals(0, keep(folder, "large", 1001));
        assertEquals(-SystemCalls.ENOENT, open(folder, "large"));
    }

    @Test
    void shouldCountTheFilesOfAnEarlierBroker() throws IOException {
        keep(new CacheFolder(root.resolve("a"), MAX_BYTES), "old", 900_000);
        CacheFolder folder = new CacheFolder(root.resolve("a"), MAX_BYTES);
        assertEquals(0, open(folder, "old"));
        Files.setLastModifiedTime(root.resolve("a/old"), FileTime.fromMillis(1_000_000L));
        assertEquals(200_000, keep(folder, "young", 200_000));
        assertEquals(-SystemCalls.ENOENT, open(folder, "old"));
    }

    @Test
    void shouldForgetVgpusThatAreGone() throws IOException {
        ComputeCache cache = ComputeCache.open(settings(MAX_BYTES), root);
        CacheFolder used = cache.folder("a");
        keep(used, "file", 10);
        keep(cache.folder("b"), "file", 10);
        cache.forget("a");
        assertFalse(Files.exists(root.resolve("compute-cache/vgpu-a")));
        assertEquals(0, keep(used, "file", 10)); // by a worker that ends late
        assertFalse(Files.exists(root.resolve("compute-cache/vgpu-a")));
        assertEquals(-SystemCalls.ENOENT, open(cache.folder("a"), "file"));
        ComputeCache next = ComputeCache.open(settings(MAX_BYTES), root);
        next.retain(Set.of("a"));
        assertEquals(-SystemCalls.ENOENT, open(next.folder("b"), "file"));
    }

    @Test
    void shouldRefuseAFolderThatOthersCanChange() throws IOException {
        Path folder = Files.createDirectory(root.resolve("compute-cache"));
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertThrows(IllegalArgumentException.class, () -> ComputeCache.open(settings(MAX_BYTES), root));
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
        assertNotNull(ComputeCache.open(settings(MAX_BYTES), root));
        assertNull(ComputeCache.open(settings(0), root));
    }

    private static ComputeCacheConfig settings(long maxBytes) {
        return new ComputeCacheConfig() {
            @Override
            public MemorySize maxSize() {
                return new MemorySize(BigInteger.valueOf(maxBytes));
            }

            @Override
            public Optional<Path> dir() {
                return Optional.empty();
            }
        };
    }
}
