package io.hawser.broker.jail;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * A control group (version 2) for each worker, with limits of memory and threads, and a weight for processor time. The
 * groups lie below the broker's own group. The broker needs that group for itself: systemd's {@code Delegate=yes}, or
 * root. The broker moves into a sibling group of the workers' groups, since the kernel forbids processes in a group
 * whose children have limits. Thread-safe; a separate thread executes the slow writes in order.
 */
public final class WorkerGroups implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(WorkerGroups.class);
    private static final String BROKER = "hawser-broker";
    private static final String WORKERS = "hawser-workers";
    private static final String PROCESSES = "cgroup.procs";
    private static final String CONTROLLERS = "cgroup.controllers";
    private static final String SUBTREE = "cgroup.subtree_control";
    private static final String WANTED = "+memory +pids";
    private static final long REMOVE_LIMIT_NS = TimeUnit.SECONDS.toNanos(2);
    private static final long STOP_SECONDS = 5;

    private final Path workers;
    private final int maxThreads;
    private final String noWeights;
    private final ExecutorService thread = Executors.newSingleThreadExecutor(
        Thread.ofPlatform().daemon().name("hawser-groups").factory());

    /** No control groups can be created; the message gives the reason. */
    static final class MissingException extends Exception {
        private static final long serialVersionUID = 1L;

        MissingException(String message) {
            super(message);
        }
    }

    private WorkerGroups(Path workers, int maxThreads, String noWeights) {
        this.workers = workers;
        this.maxThreads = maxThreads;
        this.noWeights = noWeights;
    }

    /**
     * Creates the parent of the groups, and removes the groups that a killed broker has left there.
     *
     * @param proc the folder of this process, {@code /proc/self}.
     * @param pid number of this process.
     * @param maxThreads limit of threads of a worker.
     * @throws MissingException when no groups can be created; nothing has changed then.
     */
    static WorkerGroups open(Path proc, long pid, int maxThreads) throws MissingException {
        try {
            Path own = own(proc);
            List<String> controllers = List.of(Files.readString(own.resolve(CONTROLLERS)).strip().split(" "));
            if (!controllers.containsAll(List.of("memory", "pids"))) {
                throw new MissingException("the broker's group has no memory and pids controllers: group=" + own
                    + " controllers=" + controllers + " (in a systemd unit: Delegate=yes)");
            }
            Path mine = own.resolve(BROKER);
            make(mine);
            try {
                write(mine.resolve(PROCESSES), Long.toString(pid));
                write(own.resolve(SUBTREE), WANTED);
                Path workers = own.resolve(WORKERS);
                make(workers);
                removeLeftOver(workers);
                write(workers.resolve(SUBTREE), WANTED);
                return new WorkerGroups(workers, maxThreads, divideProcessors(own, workers, controllers));
            } catch (IOException e) {
                undo(own, mine, pid);
                throw new MissingException(problem(own, e));
            }
        } catch (AccessDeniedException e) {
            throw new MissingException("the broker may not create a group: " + e.getFile()
                + " (in a systemd unit: Delegate=yes)");
        } catch (IOException e) {
            throw new MissingException("a group cannot be created: " + e.getMessage());
        }
    }

    /** Why workers have no weights; empty when they have. Limits work without weights: only this may be missing. */
    private static String divideProcessors(Path own, Path workers, List<String> controllers) {
        if (!controllers.contains("cpu")) {
            return "the broker's group has no cpu controller: controllers=" + controllers;
        }
        try {
            write(own.resolve(SUBTREE), "+cpu");
            write(workers.resolve(SUBTREE), "+cpu");
            return "";
        } catch (IOException e) {
            return "the kernel rejects the cpu controller: " + e.getMessage();
        }
    }

    /** Why workers share the processors equally, regardless of compute shares; empty when they have weights. */
    String noWeights() {
        return noWeights;
    }

    private static String problem(Path own, IOException failure) {
        String others = "";
        try {
            others = Files.readString(own.resolve(PROCESSES)).strip().replace('\n', ' ');
        } catch (IOException e) {
            failure.addSuppressed(e);
        }
        return others.isEmpty() ? "a group cannot be created: " + failure.getMessage()
            : "the broker's group must have no other process: group=" + own + " pids=" + others;
    }

    private static void undo(Path own, Path mine, long pid) {
        try {
            write(own.resolve(PROCESSES), Long.toString(pid));
            Files.delete(mine);
        } catch (IOException e) {
            LOG.warnf("the broker remains in a control group of its own: %s: %s", mine, e.getMessage());
        }
    }

    /** The folder of this process's group. */
    private static Path own(Path proc) throws IOException, MissingException {
        String group = Files.readAllLines(proc.resolve("cgroup")).stream().filter(line -> line.startsWith("0::"))
            .map(line -> line.substring("0::".length())).findFirst().orElse("");
        for (String line : Files.readAllLines(proc.resolve("mountinfo"))) {
            String[] fields = line.split(" ");
            int end = List.of(fields).indexOf("-"); // proc_pid_mountinfo(5): type follows; 3 and 4: root and place
            if (end < 0 || !fields[end + 1].equals("cgroup2")) {
                continue;
            }
            String root = fields[3].equals("/") ? "" : fields[3];
            if ((group + "/").startsWith(root + "/") && !group.contains("/..")) {
                return Path.of(fields[4] + group.substring(root.length()));
            }
        }
        throw new MissingException("the broker sees no control groups of version 2");
    }

    private static void make(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            Files.createDirectory(folder);
        }
    }

    private static void write(Path file, String text) throws IOException {
        // One write without truncation: the kernel treats each write as a command.
        Files.writeString(file, text, StandardOpenOption.WRITE);
    }

    private static void removeLeftOver(Path workers) throws IOException {
        List<Path> left = new ArrayList<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(workers, Files::isDirectory)) {
            all.forEach(left::add);
        }
        for (Path group : left) {
            write(group.resolve("cgroup.kill"), "1"); // Linux 5.14
            remove(group);
        }
        if (!left.isEmpty()) {
            LOG.infof("control groups of a killed broker were removed: groups=%d", left.size());
        }
    }

    /** Removes a group; the kernel permits it shortly after the last process was killed, once it is reaped. */
    private static void remove(Path group) throws IOException {
        long deadlineNs = System.nanoTime() + REMOVE_LIMIT_NS;
        while (true) {
            try {
                Files.deleteIfExists(group);
                return;
            } catch (IOException e) {
                if (System.nanoTime() > deadlineNs) {
                    throw e;
                }
            }
            try {
                TimeUnit.MILLISECONDS.sleep(10);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IOException("interrupted");
            }
        }
    }

    private Path group(long worker) {
        return workers.resolve("worker-" + worker);
    }

    /**
     * Puts a newly started process into its own group, before it receives a guest.
     *
     * @param memoryBytes memory limit until {@link #limit}.
     * @param cpuWeight as in {@link #weigh}.
     * @throws IOException when the process has no group or no limit.
     */
    void enter(long worker, int pid, long memoryBytes, int cpuWeight) throws IOException {
        Path group = group(worker);
        Files.createDirectory(group);
        write(group.resolve("memory.max"), Long.toString(memoryBytes));
        write(group.resolve("pids.max"), Integer.toString(maxThreads));
        // Swap would bypass the limit. On exceeding it, the kernel ends the whole group.
        if (Files.exists(group.resolve("memory.swap.max"))) { // missing in kernels without swap
            write(group.resolve("memory.swap.max"), "0");
        }
        write(group.resolve("memory.oom.group"), "1");
        if (noWeights.isEmpty()) {
            write(group.resolve("cpu.weight"), Integer.toString(cpuWeight));
        }
        write(group.resolve(PROCESSES), Integer.toString(pid));
    }

    /** Sets a worker's memory limit. */
    void limit(long worker, long memoryBytes) {
        set(worker, "memory.max", memoryBytes);
    }

    /** Sets a worker's weight among all workers, 1 to 10,000. Does nothing without weights. */
    void weigh(long worker, int weight) {
        if (noWeights.isEmpty()) {
            set(worker, "cpu.weight", weight);
        }
    }

    private void set(long worker, String control, long value) {
        thread.execute(() -> {
            try {
                write(group(worker).resolve(control), Long.toString(value));
            } catch (IOException e) {
                if (Files.exists(group(worker))) {
                    LOG.errorf("a worker's control group could not be set: worker=%d %s=%d: %s", worker, control, value,
                        e.getMessage());
                }
            }
        });
    }

    /** Whether the kernel has ended the worker for exceeding its memory limit. */
    boolean ranOut(long worker) {
        try {
            return Files.readAllLines(group(worker).resolve("memory.events")).stream()
                .anyMatch(line -> line.startsWith("oom_kill ") && !line.equals("oom_kill 0"));
        } catch (IOException e) {
            LOG.debugf("a group's events cannot be read: %s", e.getMessage());
            return false;
        }
    }

    /** Removes the group of an ended worker. */
    void leave(long worker) {
        thread.execute(() -> {
            try {
                remove(group(worker));
            } catch (IOException e) {
                LOG.warnf("the control group of an ended worker could not be removed: %s: %s", group(worker),
                    e.getMessage());
            }
        });
    }

    /** The existing groups of workers. */
    Set<Path> groups() throws IOException {
        try (DirectoryStream<Path> all = Files.newDirectoryStream(workers, Files::isDirectory)) {
            Set<Path> groups = new HashSet<>();
            all.forEach(groups::add);
            return groups;
        }
    }

    /** Waits until the groups of ended workers are removed; the next broker removes the others. */
    @Override
    public void close() {
        thread.shutdown();
        try {
            if (!thread.awaitTermination(STOP_SECONDS, TimeUnit.SECONDS)) {
                LOG.warn("some control groups of workers could not be removed");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
