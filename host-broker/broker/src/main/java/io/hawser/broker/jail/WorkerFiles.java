package io.hawser.broker.jail;

import io.hawser.broker.posix.SystemCalls;
import java.nio.ByteBuffer;
import java.util.function.IntPredicate;

/**
 * Files that one worker may use by their names, although its jail shows it no file system. Its {@link Watcher} answers
 * the system calls on their paths with these methods, on one thread.
 */
interface WorkerFiles {
    /** Whether a path names one of these files, which need not exist. */
    boolean contains(String path);

    /** Whether a path names a folder of these files that the worker can see. */
    boolean isFolder(String path);

    /**
     * Opens a file, or makes it.
     *
     * @param path as {@link #contains} allows it.
     * @param flags of open(2).
     * @param use receives the descriptor, which stays this object's; returns whether the worker has got it.
     * @return 0, or the negated errno; 1 when {@code use} returned false.
     */
    int open(String path, int flags, IntPredicate use);

    /** Removes the name of a file. Returns 0 or the negated errno. */
    int remove(String path);

    /** Makes a folder, by any path. Returns 0 or the negated errno. */
    default int makeFolder(String path) {
        return -SystemCalls.EACCES;
    }

    /**
     * Describes a file.
     *
     * @param stat receives {@code struct stat}; holds zeros before.
     * @return 0, or the negated errno.
     */
    default int describe(String path, ByteBuffer stat) {
        return -SystemCalls.EACCES;
    }

    /** The worker has ended. */
    void close();
}
