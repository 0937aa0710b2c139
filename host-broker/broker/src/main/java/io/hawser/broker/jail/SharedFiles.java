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
    private static final int FLAGS = SystemCalls.O_ACCMODE | SystemCalls.O_CREAT | SystemCalls.O_EXCL
        | SystemCalls.O_CLOEXEC | SystemCalls.O_NOFOLLOW | SystemCalls.O_LARGEFILE;

    /** Memory with a name. */
    private record SharedFile(int descriptor, long worker) {}

    private final Map<String, SharedFile> files = new HashMap<>();

    /** The files as one worker uses them. */
    WorkerFiles of(long worker) {
        return new WorkerFiles() {
            @Override
            public boolean contains(String path) {
                return path.startsWith(FOLDER) && NAME.matcher(path.substring(FOLDER.length())).matches();
            }

            @Override
            public boolean isFolder(String path) {
                return FOLDER.equals(path.endsWith("/") ? path : path + '/');
            }

            @Override
            public int open(String path, int flags, IntPredicate use) {
                return SharedFiles.this.open(worker, path, flags, use);
            }

            @Override
            public int remove(String path) {
                return SharedFiles.this.remove(path);
            }

            @Override
            public void close() {
                leave(worker);
            }
        };
    }

    private synchronized int open(long worker, String path, int flags, IntPredicate use) {
        if ((flags & ~FLAGS) != 0 || (flags & SystemCalls.O_ACCMODE) != SystemCalls.O_RDWR) {
            return -SystemCalls.EACCES;
        }
        SharedFile file = files.get(path);
        if (file != null && (flags & SystemCalls.O_CREAT) != 0 && (flags & SystemCalls.O_EXCL) != 0) {
            return -SystemCalls.EEXIST;
        }
        if (file == null) {
            if ((flags & SystemCalls.O_CREAT) == 0) {
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

    /** Workers that have the memory open keep it. */
    private synchronized int remove(String path) {
        SharedFile file = files.remove(path);
        if (file == null) {
            return -SystemCalls.ENOENT;
        }
        Posix.close(file.descriptor());
        return 0;
    }

    /** Removes the names that an ended worker has made. */
    private synchronized void leave(long worker) {
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
