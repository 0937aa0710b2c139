package io.hawser.broker.jail;

import io.hawser.broker.model.Printable;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.posix.SystemCalls;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jboss.logging.Logger;

/**
 * Answers the system calls that one worker's filter does not allow (seccomp's user notification). It opens the GPU's
 * device files for the worker, since NVIDIA's driver needs one descriptor for each mapping, and the machine's math
 * libraries, which a worker loads at a session's first call. It shows the folders of these libraries: the dynamic
 * linker never searches a folder again that it has not found. It serves {@link WorkerFiles} by name, and what a move of
 * the whole process needs ({@link MoveCalls}). It rejects all other calls and logs them. The worker's path is only
 * compared with the broker's own list, and the broker opens the path of that list. One thread for each worker, which
 * sleeps between calls.
 */
public final class Watcher {
    private static final Logger LOG = Logger.getLogger(Watcher.class);
    private static final SystemCallNames NAMES = new SystemCallNames();

    // Linux seccomp.h: requests and structures
    private static final long NOTIF_RECV = 0xc050_2100L;
    private static final long NOTIF_SEND = 0xc018_2101L;
    private static final long NOTIF_ID_VALID = 0x4008_2102L;
    private static final long NOTIF_ADDFD = 0x4018_2103L;
    private static final int ADDFD_FLAG_SEND = 2;
    private static final int STRUCT_BYTES = 256; // larger than any kernel's structure
    private static final int ID_OFFSET = 0;
    private static final int THREAD_OFFSET = 8;
    private static final int NUMBER_OFFSET = 16;
    private static final int ARGUMENTS_OFFSET = 32;
    private static final int RESPONSE_ERROR_OFFSET = 16;
    private static final int ADDFD_FLAGS_OFFSET = 8;
    private static final int ADDFD_SOURCE_OFFSET = 12;
    private static final int ADDFD_NEW_FLAGS_OFFSET = 20;
    private static final int POLLIN = 1;
    private static final long PAGE_BYTES = 4096;

    static final int OPENAT = 257; // Linux asm/unistd_64.h
    private static final int OPEN = 2;
    static final int STAT = 4;
    static final int ACCESS = 21;
    static final int NEWFSTATAT = 262;
    static final int UNLINK = 87;
    static final int SYMLINK = 88;
    private static final int UNLINKAT = 263;
    private static final int MKDIR = 83;
    // struct stat: Linux asm/stat.h
    private static final int STAT_BYTES = 144;
    private static final int STAT_FILE_SYSTEM_OFFSET = 0;
    private static final int STAT_INODE_OFFSET = 8;
    private static final int STAT_DEVICE_OFFSET = 40; // its major and minor number
    static final int STAT_LINKS_OFFSET = 16;
    static final int STAT_MODE_OFFSET = 24;
    static final int STAT_SIZE_OFFSET = 48;
    static final int STAT_BLOCKS_OFFSET = 64;
    /** The times of the last use, change and change of state: seconds and nanoseconds each. */
    static final int STAT_TIMES_OFFSET = 72;
    private static final int FOLDER_MODE = 0040555; // S_IFDIR, readable
    /** The permitted flags of open: O_ACCMODE, O_NONBLOCK, O_CLOEXEC and O_LARGEFILE. */
    private static final int OPEN_FLAGS = SystemCalls.O_ACCMODE | 04000 | SystemCalls.O_CLOEXEC
        | SystemCalls.O_LARGEFILE;
    /** Longest path to read; stops a worker from filling the broker's memory. */
    private static final int MAX_PATH_BYTES = 1024;
    /** Log lines for one worker; further rejections are only counted. */
    private static final int MAX_LINES = 20;
    /** Rejections after which the worker is ended; stops it from occupying a processor of the broker. */
    private static final int MAX_REFUSALS = 10_000;
    /** The C library reads these for its memory allocator and the number of processors, and works without them. */
    private static final Set<String> HARMLESS = Set.of("/proc/sys/vm/overcommit_memory", "/proc/stat",
        "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible");
    /** The driver names its threads, and works without the names. */
    private static final Pattern THREAD_NAME = Pattern.compile("/proc/self/task/[0-9]{1,10}/comm");
    /** NCCL reads the secret of a communicator from it. */
    private static final String RANDOM = "/dev/urandom";
    private static final long STACK_BYTES = 256 * 1024;

    private final long worker;
    private final int listener;
    private final Set<String> devices;
    private final Map<String, String> readable;
    private final List<WorkerFiles> files;
    private final boolean canReadRandom;
    private final Consumer<String> abuse;
    private final Set<String> folders; // of the libraries, each with a slash
    private final Set<String> stems; // of their files: names without a version
    private final MoveCalls moveCalls;
    private int refusals;
    private int lines;

    private Watcher(long worker, int listener, int pid, Set<String> devices, Map<String, String> libraries,
        List<WorkerFiles> files, boolean canReadRandom, Consumer<String> abuse) {
        this.worker = worker;
        this.files = List.copyOf(files);
        this.canReadRandom = canReadRandom;
        this.listener = listener;
        this.devices = devices;
        readable = new HashMap<>(libraries);
        readable.putAll(MoveCalls.readable(pid));
        moveCalls = new MoveCalls(devices);
        folders = libraries.keySet().stream().filter(file -> file.contains("/lib"))
            .map(file -> file.substring(0, file.lastIndexOf('/') + 1)).collect(Collectors.toUnmodifiableSet());
        stems = libraries.keySet().stream().map(Watcher::stem).collect(Collectors.toUnmodifiableSet());
        this.abuse = abuse;
    }

    /**
     * Starts to watch.
     *
     * @param worker number of the worker, for the log.
     * @param listener the descriptor; the watcher owns it from now on.
     * @param pid of its process.
     * @param devices paths of device files that the worker may open.
     * @param libraries paths of files that the worker may read, each with the file that is opened.
     * @param files that it may use by name; the watcher closes them when the worker has ended.
     * @param canReadRandom whether it may open {@value #RANDOM}, for NCCL.
     * @param abuse called once, on the watcher's thread, when the worker must end for too many rejected calls.
     */
    static void start(long worker, int listener, int pid, Set<String> devices, Map<String, String> libraries,
        List<WorkerFiles> files, boolean canReadRandom, Consumer<String> abuse) {
        Watcher watcher = new Watcher(worker, listener, pid, Set.copyOf(devices), libraries, files, canReadRandom,
            abuse);
        Thread.ofPlatform().daemon().name("hawser-watch-" + worker).stackSize(STACK_BYTES).start(watcher::run);
    }

    private void run() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment request = arena.allocate(STRUCT_BYTES, Long.BYTES);
            MemorySegment answer = arena.allocate(STRUCT_BYTES, Long.BYTES);
            while ((SystemCalls.poll(listener, POLLIN) & POLLIN) != 0) { // POLLHUP: the worker has ended
                request.fill((byte) 0);
                long received = SystemCalls.ioctl(listener, NOTIF_RECV, request);
                if (received >= 0) {
                    answer(request, answer);
                } else if (received != -SystemCalls.ENOENT && received != -SystemCalls.EINTR) {
                    LOG.errorf("the watcher of worker %d has failed: errno=%d", worker, -received);
                    abuse.accept("its jail cannot be watched");
                    return;
                }
            }
        } catch (PosixException e) {
            LOG.errorf("the watcher of worker %d has failed: %s", worker, e.getMessage());
            abuse.accept("its jail cannot be watched");
        } finally {
            Posix.close(listener);
            files.forEach(WorkerFiles::close);
            if (lines > MAX_LINES) {
                LOG.warnf("worker %d: its jail refused %d system calls in all", worker, refusals);
            }
        }
    }

    private void answer(MemorySegment request, MemorySegment answer) {
        int number = request.get(ValueLayout.JAVA_INT, NUMBER_OFFSET);
        String path = switch (number) {
            case OPENAT, NEWFSTATAT, UNLINKAT, SYMLINK -> path(request, 1);
            case OPEN, STAT, UNLINK, MKDIR, ACCESS -> path(request, 0);
            default -> "";
        };
        String file = devices.contains(path) || canReadRandom && RANDOM.equals(path) ? path : readable.get(path);
        if (number == OPENAT && file != null && open(request, answer, file)) {
            return;
        }
        int error = path.isEmpty() ? -SystemCalls.EPERM : -SystemCalls.EACCES;
        WorkerFiles own = files.stream().filter(f -> f.contains(path)).findFirst().orElse(null);
        if (number == MKDIR) {
            error = files.stream().mapToInt(f -> f.makeFolder(path)).filter(e -> e != -SystemCalls.EACCES).findFirst()
                .orElse(error);
        } else if (own != null) {
            error = use(own, request, answer, number, path, error);
            if (error > 0) {
                return;
            }
        } else if (number == NEWFSTATAT || number == STAT) {
            ByteBuffer stat = shows(path) ? folder() : devices.contains(path) ? device(path) : null;
            error = stat != null && describe(request, number == STAT ? 1 : 2, stat) ? 0 : error;
        }
        begin(request, answer);
        answer.set(ValueLayout.JAVA_INT, RESPONSE_ERROR_OFFSET, error);
        SystemCalls.ioctl(listener, NOTIF_SEND, answer); // a failure means that the thread has ended: ignored
        boolean isAnswer = error == 0 || error == -SystemCalls.EEXIST || own != null && error == -SystemCalls.ENOENT;
        boolean isHarmless = HARMLESS.contains(path) || moveCalls.isTried(number, path)
            || number == OPENAT && THREAD_NAME.matcher(path).matches();
        if (!isAnswer && !(isHarmless && moveCalls.isFew())) {
            refused(request, number, path, !isSearch(number, path));
        }
    }

    private static void begin(MemorySegment request, MemorySegment answer) {
        answer.fill((byte) 0);
        answer.set(ValueLayout.JAVA_LONG, ID_OFFSET, request.get(ValueLayout.JAVA_LONG, ID_OFFSET));
    }

    /** Whether a path is a folder of the worker's. */
    private boolean shows(String path) {
        return files.stream().anyMatch(f -> f.isFolder(path))
            || folders.contains(path.endsWith("/") ? path : path + '/');
    }

    /** Opens, describes or removes a file. Returns 0, the error to answer, or 1 when the answer was sent. */
    private int use(WorkerFiles own, MemorySegment request, MemorySegment answer, int number, String path, int other) {
        switch (number) {
            case UNLINK :
                return own.remove(path);
            case UNLINKAT :
                return argument(request, 2) == 0 ? own.remove(path) : other;
            case STAT, NEWFSTATAT :
                ByteBuffer stat = ByteBuffer.allocate(STAT_BYTES).order(ByteOrder.nativeOrder());
                int error = own.describe(path, stat);
                return error == 0 && !describe(request, number == STAT ? 1 : 2, stat) ? other : error;
            case OPENAT :
                int flags = (int) argument(request, 2);
                int result = own.open(path, flags,
                    descriptor -> give(request, answer, descriptor, flags & SystemCalls.O_CLOEXEC));
                return result == 0 ? 1 : result > 0 ? other : result;
            default :
                return other;
        }
    }

    /** Opens a device file or a library for the worker; returns false when the call still needs an answer. */
    private boolean open(MemorySegment request, MemorySegment answer, String path) {
        int flags = (int) argument(request, 2);
        if ((flags & ~OPEN_FLAGS) != 0 || !devices.contains(path) && (flags & SystemCalls.O_ACCMODE) != 0) {
            return false;
        }
        long opened = SystemCalls.open(path, flags & OPEN_FLAGS | SystemCalls.O_NOFOLLOW);
        if (opened < 0) {
            return false;
        }
        try {
            return give(request, answer, (int) opened, flags & SystemCalls.O_CLOEXEC);
        } finally {
            Posix.close((int) opened);
        }
    }

    /** Answers a call with a copy of a descriptor; returns false when the call still needs an answer. */
    private boolean give(MemorySegment request, MemorySegment answer, int descriptor, int flags) {
        begin(request, answer);
        answer.set(ValueLayout.JAVA_INT, ADDFD_FLAGS_OFFSET, ADDFD_FLAG_SEND);
        answer.set(ValueLayout.JAVA_INT, ADDFD_SOURCE_OFFSET, descriptor);
        answer.set(ValueLayout.JAVA_INT, ADDFD_NEW_FLAGS_OFFSET, flags);
        return SystemCalls.ioctl(listener, NOTIF_ADDFD, answer) >= 0;
    }

    /** The attributes of a device file that the driver compares with its own; null where there is none. */
    private static ByteBuffer device(String path) {
        try {
            Map<String, Object> attributes = Files.readAttributes(Path.of(path), "unix:dev,ino,mode,rdev",
                LinkOption.NOFOLLOW_LINKS);
            return ByteBuffer.allocate(STAT_BYTES).order(ByteOrder.nativeOrder())
                .putLong(STAT_FILE_SYSTEM_OFFSET, ((Number) attributes.get("dev")).longValue())
                .putLong(STAT_INODE_OFFSET, ((Number) attributes.get("ino")).longValue())
                .putLong(STAT_LINKS_OFFSET, 1).putInt(STAT_MODE_OFFSET, (Integer) attributes.get("mode"))
                .putLong(STAT_DEVICE_OFFSET, ((Number) attributes.get("rdev")).longValue());
        } catch (IOException e) {
            LOG.debugf("a device file cannot be described: %s", e.getMessage());
            return null;
        }
    }

    private static ByteBuffer folder() {
        return ByteBuffer.allocate(STAT_BYTES).order(ByteOrder.nativeOrder()).putLong(STAT_LINKS_OFFSET, 1)
            .putInt(STAT_MODE_OFFSET, FOLDER_MODE);
    }

    /** Writes a description to the worker's memory; returns false where that is not possible. */
    private boolean describe(MemorySegment request, int argument, ByteBuffer stat) {
        String file = "/proc/" + request.get(ValueLayout.JAVA_INT, THREAD_OFFSET) + "/mem";
        try (Arena arena = Arena.ofConfined(); RandomAccessFile memory = new RandomAccessFile(file, "rw")) {
            long address = argument(request, argument);
            if (address <= 0 || !isCurrent(request, arena)) { // the open file keeps to the process that is checked here
                return false;
            }
            memory.seek(address);
            memory.write(stat.array());
            return true;
        } catch (IOException e) {
            LOG.debugf("worker %d: a file cannot be described: %s", worker, e.getMessage());
            return false; // the worker has ended, or gave a wrong address
        }
    }

    /**
     * Whether the dynamic linker searches a library, or a folder with libraries or variants of them. It searches in the
     * current folder where LD_LIBRARY_PATH has an empty part.
     */
    private boolean isSearch(int number, String path) {
        if (number == OPENAT && path.indexOf('/') < 0 && path.contains(".so")) {
            return true;
        }
        return number == NEWFSTATAT ? path.startsWith("/lib") || path.startsWith("/usr/lib")
            || folders.stream().anyMatch(path::startsWith) : stems.contains(stem(path));
    }

    /** A library's name without folder and version: libcudnn_ops.so of /usr/lib/libcudnn_ops.so.9. */
    private static String stem(String path) {
        String name = path.substring(path.lastIndexOf('/') + 1);
        int end = name.indexOf(".so");
        return end < 0 ? name : name.substring(0, end + ".so".length());
    }

    private void refused(MemorySegment request, int number, String path, boolean isLogged) {
        refusals++;
        if (isLogged && ++lines <= MAX_LINES) {
            String what = path.isEmpty() ? String.format("%x, %x, %x", argument(request, 0), argument(request, 1),
                argument(request, 2)) : '"' + Printable.text(path, MAX_PATH_BYTES) + '"';
            LOG.warnf("worker %d: its jail refused %s(%s)", worker, NAMES.of(number), what);
        }
        if (refusals == MAX_REFUSALS) {
            abuse.accept("its jail has refused " + MAX_REFUSALS + " system calls");
        }
    }

    private static long argument(MemorySegment request, int index) {
        return request.get(ValueLayout.JAVA_LONG, ARGUMENTS_OFFSET + (long) index * Long.BYTES);
    }

    /** The text of a path argument, cut to {@value #MAX_PATH_BYTES} bytes; "?" when it cannot be read. */
    private String path(MemorySegment request, int index) {
        long address = argument(request, index);
        byte[] bytes = new byte[MAX_PATH_BYTES];
        int length = 0;
        try (Arena arena = Arena.ofConfined()) {
            while (length < MAX_PATH_BYTES) {
                // Only to the end of the page: the next page may not be mapped.
                long rest = PAGE_BYTES - (address + length & PAGE_BYTES - 1);
                MemorySegment part = arena.allocate(Math.min(rest, MAX_PATH_BYTES - length));
                long count = SystemCalls.read(request.get(ValueLayout.JAVA_INT, THREAD_OFFSET), address + length, part);
                if (count <= 0) {
                    return "?";
                }
                for (int i = 0; i < count && length < MAX_PATH_BYTES; i++) {
                    bytes[length] = part.get(ValueLayout.JAVA_BYTE, i);
                    if (bytes[length++] == 0) {
                        return isCurrent(request, arena) ? text(bytes, length - 1) : "?";
                    }
                }
            }
            return isCurrent(request, arena) ? text(bytes, length) : "?";
        }
    }

    private static String text(byte[] bytes, int length) {
        return length == 0 ? "?" : new String(bytes, 0, length, StandardCharsets.UTF_8);
    }

    /** Whether the thread still waits; otherwise the text may have come from another process. */
    private boolean isCurrent(MemorySegment request, Arena arena) {
        MemorySegment id = arena.allocate(Long.BYTES, Long.BYTES);
        id.set(ValueLayout.JAVA_LONG, 0, request.get(ValueLayout.JAVA_LONG, ID_OFFSET));
        return SystemCalls.ioctl(listener, NOTIF_ID_VALID, id) >= 0;
    }
}
