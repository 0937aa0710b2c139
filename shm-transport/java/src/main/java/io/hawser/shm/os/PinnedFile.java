package io.hawser.shm.os;

import java.io.IOException;
import java.nio.file.Path;

/**
 * The file of a name at one moment, held by a descriptor that neither opens nor changes the file ({@code O_PATH}). Its
 * status can therefore be checked before a device, FIFO or socket notices. Any thread; closed once.
 */
public final class PinnedFile implements AutoCloseable {
    private final int fd;
    private final FileStatus status;

    PinnedFile(int fd) throws IOException {
        this.fd = fd;
        try {
            status = FileStatus.of(fd);
        } catch (IOException e) {
            Descriptors.close(fd);
            throw e;
        }
    }

    /**
     * Pins the file of a name; a link is not followed.
     *
     * @throws IOException when the name does not exist or cannot be looked up.
     */
    public static PinnedFile of(Path path) throws IOException {
        return new PinnedFile(Descriptors.pin(path));
    }

    /** The status at the moment of pinning. */
    public FileStatus status() {
        return status;
    }

    /** A path to exactly this file, for calls that need a path; valid until {@link #close}. */
    public Path path() {
        return Path.of("/proc/self/fd/" + fd);
    }

    /**
     * Opens the file for reading and writing. Check first that {@link #status} is that of a regular file: opening a
     * device can start an action.
     *
     * @return a descriptor, which the caller closes.
     */
    public int open() throws IOException {
        return Descriptors.open(path());
    }

    /** The magic number of the file system, as in statfs(2). */
    public long fileSystem() throws IOException {
        return Descriptors.fileSystem(fd);
    }

    @Override
    public void close() {
        Descriptors.close(fd);
    }
}
