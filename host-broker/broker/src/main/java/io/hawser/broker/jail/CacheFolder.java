package io.hawser.broker.jail;

import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.SystemCalls;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.function.IntPredicate;
import org.jboss.logging.Logger;

/**
 * The compiled code of one vGPU: files of one folder that only the broker opens. A file is written once and whole. The
 * files that were used least recently go first when there is no room. Thread-safe.
 */
final class CacheFolder {
    private static final Logger LOG = Logger.getLogger(CacheFolder.class);
    /** Bytes of the file system that the cache leaves free, for the broker's own files. */
    private static final long LEFT_FREE = 1L << 30;
    /** The least size that a file counts, as on a disk; it bounds the number of files. */
    private static final long BLOCK_BYTES = 4096;
    private static final String UNFINISHED = "new"; // name of the file that is being written

    private final Path path;
    private final long maxBytes;
    private long bytes = -1; // of all files; -1 before they are counted
    private boolean isClosed;

    CacheFolder(Path path, long maxBytes) {
        this.path = path;
        this.maxBytes = maxBytes;
    }

    /**
     * Opens a file to read it.
     *
     * @param use as in {@link WorkerFiles#open}, like the result.
     */
    synchronized int open(String name, IntPredicate use) {
        Path file = path.resolve(name);
        long opened = isClosed ? -SystemCalls.ENOENT : SystemCalls.open(file.toString(), SystemCalls.O_NOFOLLOW);
        if (opened < 0) {
            return (int) opened;
        }
        try {
            Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
            return use.test((int) opened) ? 0 : 1;
        } catch (IOException e) {
            LOG.debugf("the use of a compiled file cannot be noted: %s", e.getMessage());
            return -SystemCalls.EACCES;
        } finally {
            Posix.close((int) opened);
        }
    }

    /** The size and times of a file. */
    BasicFileAttributes describe(String name) throws IOException {
        return Files.readAttributes(path.resolve(name), BasicFileAttributes.class);
    }

    /** Removes a file. Returns 0 or the negated errno. */
    synchronized int remove(String name) {
        try {
            count();
            long size = charge(path.resolve(name));
            Files.delete(path.resolve(name));
            bytes -= size;
            return 0;
        } catch (NoSuchFileException e) {
            return -SystemCalls.ENOENT;
        } catch (IOException e) {
            LOG.warnf("a compiled file cannot be removed: %s", e.getMessage());
            return -SystemCalls.EACCES;
        }
    }

    /**
     * Keeps a copy of a file that a worker has written.
     *
     * @param descriptor of the file; the worker may still change it.
     * @return bytes of the copy; 0 if there is no room for it.
     */
    synchronized long keep(String name, int descriptor) throws IOException {
        if (isClosed) {
            return 0;
        }
        if (!Files.isDirectory(path)) {
            Files.createDirectory(path, PosixFilePermissions.asFileAttribute(
                PosixFilePermissions.fromString("rwx------")));
        }
        count();
        try (FileChannel written = FileChannel.open(Path.of("/proc/self/fd/" + descriptor))) {
            long size = written.size();
            if (size == 0 || size > maxBytes || Files.getFileStore(path).getUsableSpace() < size + LEFT_FREE) {
                return 0;
            }
            makeRoom(charge(size));
            Path unfinished = path.resolve(UNFINISHED);
            try (FileChannel copy = FileChannel.open(unfinished, Set.of(StandardOpenOption.CREATE,
                StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
                for (long at = 0, count; at < size; at += count) {
                    count = written.transferTo(at, size - at, copy);
                    if (count <= 0) {
                        return 0; // the worker has cut it meanwhile
                    }
                }
            }
            Path file = path.resolve(name);
            bytes += charge(size) - (Files.exists(file) ? charge(file) : 0);
            Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
            return size;
        }
    }

    /** Removes the folder, for good. */
    synchronized void close() {
        isClosed = true;
        try {
            for (Path file : files()) {
                Files.delete(file);
            }
            Files.deleteIfExists(path);
        } catch (IOException e) {
            LOG.warnf("compiled files of a vGPU that is gone cannot be removed: %s", e.getMessage());
        }
    }

    private static long charge(long size) {
        return (size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    }

    private static long charge(Path file) throws IOException {
        return charge(Files.size(file));
    }

    private void count() throws IOException {
        if (bytes < 0) {
            bytes = 0;
            for (Path file : files()) {
                bytes += charge(file);
            }
        }
    }

    private List<Path> files() throws IOException {
        List<Path> files = new ArrayList<>();
        if (Files.isDirectory(path)) {
            try (DirectoryStream<Path> found = Files.newDirectoryStream(path)) {
                found.forEach(files::add);
            } catch (DirectoryIteratorException e) {
                throw e.getCause();
            }
        }
        return files;
    }

    /** Removes old files until there is room; a quarter of the cache at a time, since it must look at each file. */
    private void makeRoom(long size) throws IOException {
        if (bytes + size <= maxBytes) {
            return;
        }
        record Kept(Path file, long size, FileTime used) {}
        List<Kept> kept = new ArrayList<>();
        for (Path file : files()) {
            BasicFileAttributes now = Files.readAttributes(file, BasicFileAttributes.class);
            kept.add(new Kept(file, charge(now.size()), now.lastModifiedTime()));
        }
        kept.sort(Comparator.comparing(Kept::used));
        bytes = kept.stream().mapToLong(Kept::size).sum();
        for (Kept old : kept) {
            if (bytes + size <= maxBytes - maxBytes / 4 || bytes == 0) {
                break;
            }
            Files.delete(old.file());
            bytes -= old.size();
        }
    }
}
