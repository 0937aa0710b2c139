package io.hawser.broker.jail;

import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.SystemCalls;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.function.IntPredicate;
import java.util.regex.Pattern;

/**
 * The shared memory of the workers of one vGPU that communicate. NCCL makes, opens and removes it as files of
 * {@value #FOLDER}. No file system has these files. Each is memory without a name in the kernel (memfd), and this
 * object alone knows its name. Its pages count as the memory of the worker that fills them. A name ends with the worker
 * that made it. Thread-safe.
 */
final class SharedFiles {
    /** The folder, as the workers name it. */
    static final String FOLDER = "/dev/shm/";

    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-]{1,64}");
    /** NCCL makes a few for each communicator. The limit protects the broker's table of descriptors. */
    private static final int MAX_FILES = 512;
    // Linux fcntl.h
    private static final int O_ACCMODE = 3;
    private static final int O_RDWR = 2;
    private static final int O_CREAT = 0100;
    private static final int O_EXCL = 0200;
    private static final int O_CLOEXEC = 02000000;
    private static final int O_NOFOLLOW = 0400000;
    private static final int O_LARGEFILE = 0100000;
    private static final int FLAGS = O_ACCMODE | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_LARGEFILE;

    /** Memory with a name. */
    private record SharedFile(int descriptor, long worker) {}

    private final Map<String, SharedFile> files = new HashMap<>();

    /** Whether a path names a file of the folder. */
    static boolean contains(String path) {
        return path.startsWith(FOLDER) && NAME.matcher(path.substring(FOLDER.length())).matches();
    }

    /** Whether a path names the folder. */
    static boolean isFolder(String path) {
        return FOLDER.equals(path.endsWith("/") ? path : path + '/');
    }

    /**
     * Opens a file, or makes it.
     *
     * @param worker the worker that asks.
     * @param path as {@link #contains} allows it.
     * @param flags of open(2).
     * @param use receives the descriptor, which stays this object's; returns whether the worker has got it.
     * @return 0, or the negated errno; 1 when {@code use} returned false.
     */
    synchronized int open(long worker, String path, int flags, IntPredicate use) {
        if ((flags & ~FLAGS) != 0 || (flags & O_ACCMODE) != O_RDWR) {
            return -SystemCalls.EACCES;
        }
        SharedFile file = files.get(path);
        if (file != null && (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) {
            return -SystemCalls.EEXIST;
        }
        if (file == null) {
            if ((flags & O_CREAT) == 0) {
                return -SystemCalls.ENOENT;
            }
            if (files.size() == MAX_FILES) {
                return -SystemCalls.ENOSPC;
            }
            long made = SystemCalls.memory(path.substring(FOLDER.length()));
            if (made < 0) {
                return (int) made;
            }
            file = new SharedFile((int) made, worker);
            files.put(path, file);
        }
        return use.test(file.descriptor()) ? 0 : 1;
    }

    /** Removes a name; workers that have the memory open keep it. Returns 0 or the negated errno. */
    synchronized int remove(String path) {
        SharedFile file = files.remove(path);
        if (file == null) {
            return -SystemCalls.ENOENT;
        }
        Posix.close(file.descriptor());
        return 0;
    }

    /** Removes the names that an ended worker has made. */
    synchronized void leave(long worker) {
        for (Iterator<SharedFile> each = files.values().iterator(); each.hasNext();) {
            SharedFile file = each.next();
            if (file.worker() == worker) {
                Posix.close(file.descriptor());
                each.remove();
            }
        }
    }

    /** Number of names. */
    synchronized int size() {
        return files.size();
    }
}
