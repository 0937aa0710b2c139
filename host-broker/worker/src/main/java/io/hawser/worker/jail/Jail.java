package io.hawser.worker.jail;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Removes rights from this process, for all its threads and permanently. All files that the worker will need must be
 * open, and their content loaded, before it enters the jail.
 */
public final class Jail {
    /** How strictly the worker is jailed. */
    public enum Mode {
        /** As far as the machine allows. */
        AUTO,
        /** Completely, or the worker exits. */
        STRICT,
        /** No jail. */
        OFF
    }

    /**
     * Options of the jail.
     *
     * @param mode how strictly the worker is jailed.
     * @param user id to change to, as user and as group; 0 to keep the current one. Only root can change it.
     * @param watched whether the watcher decides on system calls that the filter does not allow; else they fail with
     *     EPERM.
     * @param sockets whether it may make sockets of IP in its network, which only workers of one vGPU share.
     */
    public record Options(Mode mode, int user, boolean watched, boolean sockets) {}

    /**
     * The parts of the jail.
     *
     * @param inForce the parts in force, for people.
     * @param missing the parts that are not in force, each with its reason.
     * @param listener descriptor from which the watcher receives system calls; only the watcher may keep it; -1 for
     *     none.
     */
    public record Report(List<String> inForce, List<String> missing, int listener) {
        /** The report as one line. */
        public String text() {
            String text = inForce.isEmpty() ? "none" : String.join(", ", inForce);
            return missing.isEmpty() ? text : text + "; not: " + String.join(", ", missing);
        }
    }

    // Linux prctl.h
    private static final int PR_SET_NO_NEW_PRIVS = 38;
    private static final int PR_GET_SECCOMP = 21;
    // Linux seccomp.h
    private static final long TSYNC = 1;
    private static final long NEW_LISTENER = 8;
    // With a listener: the kernel reports a failure as an errno, not as a thread's id.
    private static final long TSYNC_ESRCH = 16;
    private static final int SECCOMP_MODE_FILTER = 2;
    // Linux asm-generic/resource.h
    private static final int RLIMIT_CORE = 4;
    private static final int RLIMIT_NPROC = 6;
    private static final int RLIMIT_NOFILE = 7;
    private static final int RLIMIT_MEMLOCK = 8;
    private static final int RLIMIT_MSGQUEUE = 12;
    /**
     * Each mapping of a guest or of a driver uses one descriptor. The limit stops a worker that fills the kernel's file
     * table.
     */
    private static final long MAX_DESCRIPTORS = 16384;
    /**
     * Threads of the worker's user: enough for the JVM and a software GPU on a large machine. The limit stops a fork
     * bomb.
     */
    private static final long MAX_THREADS = 4096;
    /** When memory runs out, the kernel ends workers before the broker. */
    private static final String OOM_SCORE = "500";
    // Linux capability.h
    private static final int SYS_CAPGET = 125;
    private static final int CAPABILITY_VERSION_3 = 0x2008_0522;

    private final List<String> inForce = new ArrayList<>();
    private final List<String> missing = new ArrayList<>();
    private int listener = -1;

    private Jail() {
    }

    /**
     * Enters the jail, permanently.
     *
     * @throws IllegalStateException if a part is missing and the mode is strict, or a check of the jail fails.
     */
    public static Report enter(Options options) {
        return enter(options, -1);
    }

    /**
     * Enters the jail as {@link #enter(Options)} does, and keeps an RDMA device.
     *
     * @param rdmaDevice descriptor of its commands; -1 for none.
     */
    public static Report enter(Options options, int rdmaDevice) {
        Jail jail = new Jail();
        if (options.mode() != Mode.OFF) {
            jail.close(options, rdmaDevice);
            if (options.mode() == Mode.STRICT && !jail.missing.isEmpty()) {
                throw new IllegalStateException("the jail must be complete (hawser.worker.jail=strict): missing: "
                    + String.join(", ", jail.missing));
            }
        }
        return new Report(List.copyOf(jail.inForce), List.copyOf(jail.missing), jail.listener);
    }

    /**
     * Raises the limit of locked memory, which memory for an RDMA device counts against. Call it before the jail.
     *
     * @param bytes the least limit.
     * @return null when the limit suffices; else the reason why it is lower.
     */
    public static String allowLockedMemory(long bytes) {
        long result = Kernel.raiseLimit(RLIMIT_MEMLOCK, bytes);
        return result >= 0 ? null : "the limit of locked memory (RLIMIT_MEMLOCK) must be at least " + bytes
            + " bytes: " + Kernel.error(result);
    }

    private void close(Options options, int rdmaDevice) {
        if (!"amd64".equals(System.getProperty("os.arch"))) {
            missing.add("everything (only the system calls of x86_64 are known)");
            return;
        }
        Kernel.returnMemory();
        raiseOomScore();
        setLimits();
        emptyRoot();
        becomeUser(options.user());
        addPart("no_new_privs", Kernel.prctl(PR_SET_NO_NEW_PRIVS, 1));
        filter(options.watched(), options.sockets(), rdmaDevice);
    }

    private void addPart(String name, long result) {
        if (result < 0) {
            missing.add(name + " (" + Kernel.error(result) + ")");
        } else {
            inForce.add(name);
        }
    }

    private void raiseOomScore() {
        try {
            Files.writeString(Path.of("/proc/self/oom_score_adj"), OOM_SCORE);
        } catch (IOException e) {
            missing.add("end before the broker when memory runs out (" + e.getMessage() + ")");
        }
    }

    private void setLimits() {
        long worst = Math.min(Math.min(Kernel.limit(RLIMIT_CORE, 0), Kernel.limit(RLIMIT_MSGQUEUE, 0)),
            Kernel.limit(RLIMIT_NOFILE, MAX_DESCRIPTORS));
        addPart("limits", worst);
    }

    /** Changes the root to an empty folder without a name, so that no path leads to a file. */
    private void emptyRoot() {
        try (Arena arena = Arena.ofConfined()) {
            // The name is unpredictable, and mkdir fails for a folder that exists: another process cannot prepare the
            // folder.
            MemorySegment path = arena.allocateFrom(System.getProperty("java.io.tmpdir") + "/hawser-jail-"
                + ProcessHandle.current().pid() + "-" + Long.toHexString(System.nanoTime()));
            long result = Kernel.makeFolder(path);
            if (result >= 0) {
                result = Kernel.changeFolder(path);
                long removed = Kernel.removeFolder(path);
                MemorySegment here = arena.allocateFrom(".");
                result = result < 0 || removed < 0 ? Math.min(result, removed) : Kernel.changeRoot(here);
            }
            addPart("empty root folder", result);
        }
    }

    private void becomeUser(int user) {
        if (user > 0) {
            addPart("limit of threads", Kernel.limit(RLIMIT_NPROC, MAX_THREADS));
            addPart("user " + user, Kernel.becomeUser(user));
        } else {
            missing.add("user of its own (only root can give one)");
        }
        long capabilities = capabilities();
        if (capabilities == 0) {
            inForce.add("no capabilities");
        } else {
            missing.add("no capabilities (the worker has " + Long.toHexString(capabilities) + ")");
        }
    }

    /** The capabilities that this thread can use. The change of user has removed them from all threads. */
    private static long capabilities() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment header = arena.allocate(2 * Integer.BYTES, Integer.BYTES);
            header.set(ValueLayout.JAVA_INT, 0, CAPABILITY_VERSION_3);
            // effective, permitted and inheritable sets; two words each
            MemorySegment sets = arena.allocate(6 * Integer.BYTES, Integer.BYTES);
            long result = Kernel.call(SYS_CAPGET, header.address(), sets.address(), 0, 0, 0);
            if (result < 0) {
                throw new IllegalStateException("capabilities must be readable: " + Kernel.error(result));
            }
            long low = sets.get(ValueLayout.JAVA_INT, 0) | sets.get(ValueLayout.JAVA_INT, 4);
            long high = sets.get(ValueLayout.JAVA_INT, 12) | sets.get(ValueLayout.JAVA_INT, 16);
            return high << 32 | low & 0xffff_ffffL;
        }
    }

    private void filter(boolean watched, boolean sockets, int rdmaDevice) {
        long result = Kernel.EINVAL;
        if (watched) {
            result = install(TSYNC | NEW_LISTENER | TSYNC_ESRCH, Filter.of(true, sockets, rdmaDevice));
            if (result >= 0) {
                listener = (int) result;
            } else {
                missing.add("watched system calls (" + Kernel.error(result) + ")");
            }
        }
        if (!watched || result < 0) {
            result = install(TSYNC, Filter.of(false, sockets, rdmaDevice));
        }
        if (result > 0 && listener < 0) {
            throw new IllegalStateException("the filter must hold for all threads: exempt=" + result);
        }
        addPart("system calls (" + SystemCall.count(sockets) + " of them, " + (listener < 0 ? "not " : "")
            + "watched)", result);
        if (result >= 0 && Kernel.prctl(PR_GET_SECCOMP, 0) != SECCOMP_MODE_FILTER) {
            throw new IllegalStateException("the filter must be in force");
        }
    }

    private static long install(long flags, Filter filter) {
        try (Arena arena = Arena.ofConfined()) {
            return Kernel.seccomp(flags, filter.encode(arena));
        }
    }

    /**
     * Closes the worker's copy of the listener, after the watcher has one. With a listener, a process can allow itself
     * every system call.
     */
    public static void closeListener(int listener) {
        Kernel.close(listener);
    }
}
