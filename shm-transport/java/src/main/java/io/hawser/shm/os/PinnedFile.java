package io.hawser.shm.os;

import java.io.IOException;
import java.nio.file.Path;

/**
 * A file that a name stood for at one moment, held by a descriptor that neither opens nor changes the file
 * ({@code O_PATH}). So its status can be judged before any device, FIFO or socket notices. Any thread; closed once.
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
     * Pins what a name stands for; a link is pinned itself.
     *
     * @throws IOException when there is nothing of that name, or the name cannot be looked up.
     */
    public static PinnedFile of(Path path) throws IOException {
        return new PinnedFile(Descriptors.pin(path));
    }

    /** As it was when it was pinned. */
    public FileStatus status() {
        return status;
    }

    /** A name of this very file, for calls that take a path; valid until {@link #close}. */
    public Path path() {
        return Path.of("/proc/self/fd/" + fd);
    }

    /**
     * Opens the file for reading and writing. Only for a file whose {@link #status} is that of a regular file: opening
     * a device can set it to work.
     *
     * @return a descriptor of the caller's.
     */
    public int open() throws IOException {
        return Descriptors.open(path());
    }

    /** The magic number of the file system, as statfs(2) has it. */
    public long fileSystem() throws IOException {
        return Descriptors.fileSystem(fd);
    }

    @Override
    public void close() {
        Descriptors.close(fd);
    }
}
