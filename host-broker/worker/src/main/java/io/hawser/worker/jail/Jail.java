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
 * What a worker takes from itself, for all its threads and for good. What the worker will need from files has to be
 * open, and loaded, before.
 */
public final class Jail {
    /** Whether to be jailed. */
    public enum Mode {
        /** As far as the machine lets it. */
        AUTO,
        /** In full, or not to go on. */
        STRICT,
        /** Not at all. */
        OFF
    }

    /**
     * How to be jailed.
     *
     * @param mode how strictly.
     * @param user id to become, as user and as group; 0 to stay who it is. Only root can.
     * @param watched whether a watcher answers what the filter does not allow; else it fails with EPERM.
     */
    public record Options(Mode mode, int user, boolean watched) { }

    /**
     * What is in force.
     *
     * @param inForce the parts, for people.
     * @param missing the parts that are not in force, each with its reason.
     * @param listener descriptor by which the watcher is asked, which only the watcher may have; -1 for none.
     */
    public record Report(List<String> inForce, List<String> missing, int listener) {
        /** One line. */
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
    private static final long TSYNC_ESRCH = 16; // with a listener: a failure is an errno, not a thread's id
    private static final int SECCOMP_MODE_FILTER = 2;
    // Linux asm-generic/resource.h
    private static final int RLIMIT_CORE = 4;
    private static final int RLIMIT_NPROC = 6;
    private static final int RLIMIT_NOFILE = 7;
    private static final int RLIMIT_MSGQUEUE = 12;
    /** Descriptors: a guest's mappings and a driver's take one each; stops one that fills the kernel with files. */
    private static final long MAX_DESCRIPTORS = 16384;
    /** Threads of the worker's user: those of the JVM and of a software GPU on a large machine; stops a bomb. */
    private static final long MAX_THREADS = 4096;
    /** The kernel, when it runs out of memory, ends workers before it ends the broker. */
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
     * Goes into the jail. There is no way out.
     *
     * @throws IllegalStateException if a part is missing and the mode is strict, or the jail is not what it should be.
     */
    public static Report enter(Options options) {
        Jail jail = new Jail();
        if (options.mode() != Mode.OFF) {
            jail.close(options);
            if (options.mode() == Mode.STRICT && !jail.missing.isEmpty()) {
                throw new IllegalStateException("the jail must be complete (hawser.worker.jail=strict): missing: "
                    + String.join(", ", jail.missing));
            }
        }
        return new Report(List.copyOf(jail.inForce), List.copyOf(jail.missing), jail.listener);
    }

    private void close(Options options) {
        if (!"amd64".equals(System.getProperty("os.arch"))) {
            missing.add("everything (the numbers of system calls are known for x86_64)");
            return;
        }
        offerToOutOfMemory();
        takeLimits();
        emptyRoot();
        becomeUser(options.user());
        part("no_new_privs", Kernel.prctl(PR_SET_NO_NEW_PRIVS, 1));
        filter(options.watched());
    }

    private void part(String name, long result) {
        if (result < 0) {
            missing.add(name + " (" + Kernel.error(result) + ")");
        } else {
            inForce.add(name);
        }
    }

    private void offerToOutOfMemory() {
        try {
            Files.writeString(Path.of("/proc/self/oom_score_adj"), OOM_SCORE);
        } catch (IOException e) {
            missing.add("end before others when memory is short (" + e.getMessage() + ")");
        }
    }

    private void takeLimits() {
        long worst = Math.min(Math.min(Kernel.limit(RLIMIT_CORE, 0), Kernel.limit(RLIMIT_MSGQUEUE, 0)),
            Kernel.limit(RLIMIT_NOFILE, MAX_DESCRIPTORS));
        part("limits", worst);
    }

    /** A root folder without a name and without anything in it, so that no path leads anywhere. */
    private void emptyRoot() {
        try (Arena arena = Arena.ofConfined()) {
            // A name that cannot be foreseen: a folder that is there already is not used.
            MemorySegment path = arena.allocateFrom(System.getProperty("java.io.tmpdir") + "/hawser-jail-"
                + ProcessHandle.current().pid() + "-" + Long.toHexString(System.nanoTime()));
            long result = Kernel.makeFolder(path);
            if (result >= 0) {
                result = Kernel.changeFolder(path);
                long removed = Kernel.removeFolder(path);
                MemorySegment here = arena.allocateFrom(".");
                result = result < 0 || removed < 0 ? Math.min(result, removed) : Kernel.changeRoot(here);
            }
            part("empty root folder", result);
        }
    }

    private void becomeUser(int user) {
        if (user > 0) {
            part("limit of threads", Kernel.limit(RLIMIT_NPROC, MAX_THREADS));
            part("user " + user, Kernel.becomeUser(user));
        } else {
            missing.add("user of its own (only root can give one)");
        }
        long capabilities = capabilities();
        if (capabilities == 0) {
            inForce.add("no capabilities");
        } else {
            missing.add("no capabilities (it has " + Long.toHexString(capabilities) + ")");
        }
    }

    /** Those that this thread can use; a change of user has taken them from all threads. */
    private static long capabilities() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment header = arena.allocate(2 * Integer.BYTES, Integer.BYTES);
            header.set(ValueLayout.JAVA_INT, 0, CAPABILITY_VERSION_3);
            // twice: effective, permitted, inheritable
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

    private void filter(boolean watched) {
        long result = Kernel.EINVAL;
        if (watched) {
            result = install(TSYNC | NEW_LISTENER | TSYNC_ESRCH, true);
            if (result >= 0) {
                listener = (int) result;
            } else {
                missing.add("watched system calls (" + Kernel.error(result) + ")");
            }
        }
        if (!watched || result < 0) {
            result = install(TSYNC, false);
        }
        if (result > 0 && listener < 0) {
            throw new IllegalStateException("the filter must hold for all threads: exempt=" + result);
        }
        part("system calls (" + SystemCall.values().length + " of them, " + (listener < 0 ? "not " : "") + "watched)",
            result);
        if (result >= 0 && Kernel.prctl(PR_GET_SECCOMP, 0) != SECCOMP_MODE_FILTER) {
            throw new IllegalStateException("the filter must be in force");
        }
    }

    private static long install(long flags, boolean watched) {
        try (Arena arena = Arena.ofConfined()) {
            return Kernel.seccomp(flags, Filter.of(watched).encode(arena));
        }
    }

    /** Gives the listener up, once the watcher has it: who has it can allow itself everything. */
    public static void forget(int listener) {
        Kernel.close(listener);
    }
}
