package io.hawser.broker.jail;

import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.SystemCalls;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import java.util.regex.Pattern;
import org.jboss.logging.Logger;

/**
 * The {@link ComputeCache} as one worker sees it. NVIDIA's driver opens and locks {@code index}, then reads or writes a
 * file such as {@code 0/c/42bbe7d2a14ea5}, then writes the index, and finds a file without the index's help.
 *
 * <p>A worker writes memory only, and never a file of the broker's: the broker copies the memory to the vGPU's folder
 * at the worker's next use of the cache, or when it has ended. The index is memory of one worker, so that no worker can
 * lock the others out. Used by the watcher's thread; {@link #serve} by any.
 */
final class CacheFiles implements WorkerFiles {
    private static final Logger LOG = Logger.getLogger(CacheFiles.class);
    private static final String INDEX = "index";
    private static final Pattern CODE = Pattern.compile("[0-9a-f]/[0-9a-f]/[0-9a-f]{1,64}");
    private static final Pattern FOLDER = Pattern.compile("[0-9a-f](/[0-9a-f])?");
    private static final int WRITE = SystemCalls.O_WRONLY | SystemCalls.O_CREAT | SystemCalls.O_TRUNC;
    private static final int CREATE_INDEX = SystemCalls.O_CREAT | SystemCalls.O_TRUNC;
    private static final int REGULAR_MODE = 0100600; // S_IFREG, of its owner
    private static final int DISK_BLOCK_BYTES = 512; // the unit of st_blocks

    private final Path root;
    private final long maxBytes; // that this worker may add
    private volatile CacheFolder folder; // null before the worker serves a vGPU
    private int index = -1;
    private int written = -1;
    private String writtenName;
    private long added;

    /**
     * Makes the view of a worker without a vGPU, which finds nothing.
     *
     * @param root the cache's folder, as the worker names it.
     * @param maxBytes that the worker may add: more would only replace its own files.
     */
    CacheFiles(Path root, long maxBytes) {
        this.root = root;
        this.maxBytes = maxBytes;
    }

    /** Shows the cache of the vGPU that the worker serves from now on. */
    void serve(CacheFolder vgpu) {
        folder = vgpu;
    }

    /** The part of a path below the cache's folder, or "". */
    private String name(String path) {
        String prefix = root + "/";
        return path.startsWith(prefix) ? path.substring(prefix.length()) : "";
    }

    @Override
    public boolean contains(String path) {
        String name = name(path);
        return INDEX.equals(name) || CODE.matcher(name).matches() || FOLDER.matcher(name).matches();
    }

    @Override
    public boolean isFolder(String path) {
        return path.equals(root.toString());
    }

    @Override
    public int open(String path, int flags, IntPredicate use) {
        int kind = flags & ~(SystemCalls.O_CLOEXEC | SystemCalls.O_LARGEFILE | SystemCalls.O_NOFOLLOW);
        String name = name(path);
        if (INDEX.equals(name)) {
            return openIndex(kind, use);
        }
        keepWritten();
        CacheFolder own = folder;
        if (!CODE.matcher(name).matches() || kind != SystemCalls.O_RDONLY && kind != WRITE) {
            return -SystemCalls.EACCES;
        }
        if (own == null) {
            return -SystemCalls.ENOENT;
        }
        if (kind == SystemCalls.O_RDONLY) {
            return own.open(fileName(name), use);
        }
        long made = SystemCalls.memory("compute-cache");
        if (made < 0) {
            return (int) made;
        }
        written = (int) made;
        writtenName = fileName(name);
        return use.test(written) ? 0 : 1;
    }

    private static String fileName(String name) {
        return name.replace('/', '-');
    }

    /** Opens the index again for each call, because copies of a descriptor share one position. */
    private int openIndex(int kind, IntPredicate use) {
        if ((kind & ~CREATE_INDEX) != SystemCalls.O_RDWR) {
            return -SystemCalls.EACCES;
        }
        keepWritten();
        if ((kind & SystemCalls.O_TRUNC) != 0) {
            index = close(index);
        }
        if (index < 0) {
            if ((kind & SystemCalls.O_CREAT) == 0) {
                return -SystemCalls.ENOENT;
            }
            index = (int) SystemCalls.memory("compute-cache-index");
            if (index < 0) {
                return index;
            }
        }
        long opened = SystemCalls.open("/proc/self/fd/" + index, SystemCalls.O_RDWR);
        if (opened < 0) {
            return (int) opened;
        }
        try {
            return use.test((int) opened) ? 0 : 1;
        } finally {
            Posix.close((int) opened);
        }
    }

    @Override
    public int remove(String path) {
        keepWritten();
        CacheFolder own = folder;
        String name = name(path);
        return own == null || !CODE.matcher(name).matches() ? -SystemCalls.ENOENT : own.remove(fileName(name));
    }

    /** The driver makes each folder above a file, from the root on. None exists, and all may be made. */
    @Override
    public int makeFolder(String path) {
        String plain = path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
        if (root.toString().equals(plain) || root.toString().startsWith(plain + '/')) {
            return -SystemCalls.EEXIST;
        }
        return FOLDER.matcher(name(plain)).matches() ? 0 : -SystemCalls.EACCES;
    }

    @Override
    public int describe(String path, ByteBuffer stat) {
        keepWritten();
        CacheFolder own = folder;
        String name = name(path);
        if (own == null || !CODE.matcher(name).matches()) {
            return -SystemCalls.ENOENT; // a folder, in which the driver would look for files
        }
        try {
            BasicFileAttributes file = own.describe(fileName(name));
            stat.putLong(Watcher.STAT_LINKS_OFFSET, 1).putInt(Watcher.STAT_MODE_OFFSET, REGULAR_MODE)
                .putLong(Watcher.STAT_SIZE_OFFSET, file.size())
                .putLong(Watcher.STAT_BLOCKS_OFFSET, (file.size() + DISK_BLOCK_BYTES - 1) / DISK_BLOCK_BYTES);
            FileTime time = file.lastModifiedTime();
            long second = time.to(TimeUnit.SECONDS);
            long rest = time.to(TimeUnit.NANOSECONDS) - TimeUnit.SECONDS.toNanos(second);
            for (int i = 0; i < 3; i++) {
                stat.putLong(Watcher.STAT_TIMES_OFFSET + 2 * i * Long.BYTES, second)
                    .putLong(Watcher.STAT_TIMES_OFFSET + (2 * i + 1) * Long.BYTES, rest);
            }
            return 0;
        } catch (NoSuchFileException e) {
            return -SystemCalls.ENOENT;
        } catch (IOException e) {
            LOG.debugf("a compiled file cannot be described: %s", e.getMessage());
            return -SystemCalls.EACCES;
        }
    }

    /** Keeps what the worker has written. */
    private void keepWritten() {
        if (written < 0) {
            return;
        }
        try {
            if (added < maxBytes) {
                added += folder.keep(writtenName, written);
            }
        } catch (IOException e) {
            LOG.warnf("compiled code cannot be kept: %s", e.getMessage());
        } finally {
            written = close(written);
        }
    }

    private static int close(int descriptor) {
        if (descriptor >= 0) {
            Posix.close(descriptor);
        }
        return -1;
    }

    @Override
    public void close() {
        keepWritten();
        index = close(index);
    }
}
