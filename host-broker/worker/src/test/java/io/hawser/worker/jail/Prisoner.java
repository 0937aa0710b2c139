package io.hawser.worker.jail;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/**
 * A process that enters the jail and then makes the calls of a captured worker, on a thread that existed before: {@code
 * Prisoner MODE USER ACT...}. It prints the report first. For each act it prints two lines: {@code try} and the act's
 * name, then the name and the kernel's result, 0 or more, or a negated errno.
 */
final class Prisoner {
    private static final int BUFFER_BYTES = 4096;
    private static final int SYS_EXIT_GROUP = 231; // Linux asm/unistd_64.h
    private static final int PTRACE_SEIZE = 0x4206; // Linux ptrace.h
    private static final int CLONE_FS = 0x200; // Linux sched.h
    private static final int SIGINFO_CODE_OFFSET = 8; // Linux asm-generic/siginfo.h
    // Linux asm-generic/siginfo.h; the only code that a process may send to another
    private static final int SI_QUEUE = -1;

    /** Returns memory to the kernel. The act alone runs in a jail that nobody watches yet. */
    static final String RETURN_MEMORY = "return-memory";

    private static int[] absent; // always null

    private final Map<String, Act> acts = new LinkedHashMap<>();
    private final MemorySegment buffer = Arena.global().allocate(BUFFER_BYTES, 16);
    private final MemorySegment signal = Arena.global().allocate(BUFFER_BYTES, 16);
    private final long parent = ProcessHandle.current().parent().orElseThrow().pid();

    /** A call to try. */
    @FunctionalInterface
    private interface Act {
        long run();
    }

    /** Waits until the test has inspected this process and has closed its end of the pipe. */
    private static long await() {
        try {
            return System.in.read();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Prisoner() {
        acts.put("wait", Prisoner::await);
        acts.put(RETURN_MEMORY, () -> {
            Kernel.returnMemory();
            return 0;
        });
        signal.set(ValueLayout.JAVA_INT, SIGINFO_CODE_OFFSET, SI_QUEUE);
        files();
        network();
        processes();
        kernel();
    }

    private static long text(String text) {
        return Arena.global().allocateFrom(text).address();
    }

    private void files() {
        long passwd = text("/etc/passwd");
        long fresh = text("/tmp/hawser-prisoner");
        long memory = text("/proc/" + parent + "/mem");
        long here = text(".");
        acts.put("openat", () -> Kernel.call(257, -100, passwd, 0, 0, 0));
        acts.put("open", () -> Kernel.call(2, passwd, 0, 0, 0, 0));
        acts.put("create", () -> Kernel.call(257, -100, fresh, 0102, 0600, 0));
        acts.put("open-memory-of-broker", () -> Kernel.call(257, -100, memory, 2, 0, 0));
        acts.put("open-here", () -> Kernel.call(257, -100, here, 0, 0, 0));
        acts.put("openat2", () -> Kernel.call(437, -100, passwd, buffer.address(), 24, 0));
        acts.put("stat", () -> Kernel.call(4, passwd, buffer.address(), 0, 0, 0));
        acts.put("unlink", () -> Kernel.call(87, passwd, 0, 0, 0, 0));
        acts.put("mkdir", () -> Kernel.call(83, fresh, 0700, 0, 0, 0));
        acts.put("chroot", () -> Kernel.call(161, here, 0, 0, 0, 0));
    }

    private void network() {
        acts.put("socket-inet", () -> Kernel.call(41, 2, 1, 0, 0, 0));
        acts.put("socket-unix", () -> Kernel.call(41, 1, 1, 0, 0, 0));
        acts.put("socketpair", () -> Kernel.call(53, 1, 1, 0, buffer.address(), 0));
        acts.put("connect", () -> Kernel.call(42, 0, buffer.address(), 16, 0, 0));
        acts.put("bind", () -> Kernel.call(49, 0, buffer.address(), 16, 0, 0));
    }

    private void processes() {
        acts.put("fork", () -> child(Kernel.call(57, 0, 0, 0, 0, 0)));
        acts.put("vfork", () -> child(Kernel.call(58, 0, 0, 0, 0, 0)));
        acts.put("clone-process", () -> child(Kernel.call(56, 17, 0, 0, 0, 0)));
        acts.put("kill-broker", () -> Kernel.call(62, parent, 0, 0, 0, 0));
        acts.put("kill-all", () -> Kernel.call(62, -1, 0, 0, 0, 0));
        acts.put("tgkill-broker", () -> Kernel.call(234, parent, parent, 0, 0, 0));
        acts.put("tkill-broker", () -> Kernel.call(200, parent, 0, 0, 0, 0));
        acts.put("rt_sigqueueinfo", () -> Kernel.call(129, parent, 0, signal.address(), 0, 0));
        acts.put("pidfd_open", () -> Kernel.call(434, parent, 0, 0, 0, 0));
        acts.put("process_vm_readv", () -> Kernel.call(310, parent, buffer.address(), 0, buffer.address(), 0));
        acts.put("kcmp", () -> Kernel.call(312, parent, parent, 0, 0, 0));
        acts.put("execve", () -> Kernel.call(59, text("/bin/true"), 0, 0, 0, 0));
        // Not PTRACE_ATTACH: without a filter it would stop the test process permanently.
        acts.put("ptrace", () -> Kernel.call(101, PTRACE_SEIZE, parent, 0, 0, 0));
        acts.put("process_vm_writev", () -> Kernel.call(311, parent, buffer.address(), 0, buffer.address(), 0));
    }

    /** Ends a child that a broken jail has allowed, at once: it has only a copy of one thread, and no working JVM. */
    private static long child(long answer) {
        return answer == 0 ? Kernel.call(SYS_EXIT_GROUP, 0, 0, 0, 0, 0) : answer;
    }

    private void kernel() {
        acts.put("setresuid", () -> Kernel.call(117, 0, 0, 0, 0, 0));
        acts.put("capset", () -> Kernel.call(126, buffer.address(), buffer.address(), 0, 0, 0));
        // Without a filter, the kernel allows this to every process.
        acts.put("unshare", () -> Kernel.call(272, CLONE_FS, 0, 0, 0, 0));
        acts.put("setns", () -> Kernel.call(308, 0, 0, 0, 0, 0));
        acts.put("bpf", () -> Kernel.call(321, 0, buffer.address(), 48, 0, 0));
        acts.put("io_uring_setup", () -> Kernel.call(425, 1, buffer.address(), 0, 0, 0));
        acts.put("perf_event_open", () -> Kernel.call(298, buffer.address(), 0, -1, -1, 0));
        acts.put("userfaultfd", () -> Kernel.call(323, 0, 0, 0, 0, 0));
        acts.put("keyctl", () -> Kernel.call(250, 0, -3, 0, 0, 0));
        acts.put("shmget", () -> Kernel.call(29, 0, 4096, 01600, 0, 0));
        acts.put("prctl-dumpable", () -> Kernel.call(157, 4, 1, 0, 0, 0));
        acts.put("setrlimit", () -> Kernel.call(160, 4, buffer.address(), 0, 0, 0));
        acts.put("mount", () -> Kernel.call(165, text("none"), text("/tmp"), text("tmpfs"), 0, 0));
    }

    private void print(String name, long answer) {
        System.out.println(name + ' ' + answer);
    }

    private void tryAll(String[] names) {
        for (String name : names) {
            System.out.println("try " + name);
            print(name, acts.get(name).run());
        }
    }

    /** Runs the acts. */
    public static void main(String[] args) throws InterruptedException {
        Prisoner prisoner = new Prisoner();
        String[] names = args.length > 2 ? java.util.Arrays.copyOfRange(args, 2, args.length)
            : prisoner.acts.keySet().toArray(String[]::new);
        boolean isWatched = names.length == 1 && names[0].equals(RETURN_MEMORY);
        prisoner.print("before", prisoner.acts.get("stat").run());
        CountDownLatch jailed = new CountDownLatch(1);
        CountDownLatch over = new CountDownLatch(1);
        Thread earlier = new Thread(() -> {
            try {
                jailed.await();
                prisoner.tryAll(names);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } finally {
                over.countDown(); // also when an act throws, so that main does not wait for ever
            }
        });
        earlier.setDaemon(true); // an incomplete strict jail ends main
        earlier.start();
        Jail.Report report = Jail.enter(new Jail.Options(Jail.Mode.valueOf(args[0]), Integer.parseInt(args[1]),
            isWatched, false));
        System.out.println("report " + report.text());
        jailed.countDown();
        over.await();
        if (isWatched) {
            Runtime.getRuntime().halt(0); // further calls would wait for a watcher
        }
        // Keeps the JVM busy: it compiles code, collects memory and starts threads.
        Object[] kept = new Object[1000];
        for (int i = 0; i < 2_000_000; i++) {
            kept[i % kept.length] = new byte[i % 512];
        }
        System.gc();
        try {
            absent[0] = 1; // raises a signal whose handler returns with a system call
        } catch (NullPointerException e) {
            System.out.println("signal 0");
        }
        Thread later = new Thread(() -> System.out.println("alive 0"));
        later.start();
        later.join();
    }
}
