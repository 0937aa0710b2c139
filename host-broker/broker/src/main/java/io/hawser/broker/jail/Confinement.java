package io.hawser.broker.jail;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.model.JailMode;
import io.hawser.broker.posix.IsolatedSpawner;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.posix.Spawner;
import io.hawser.broker.posix.SystemCalls;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Consumer;
import org.jboss.logging.Logger;

/**
 * The broker's part of its workers' jail: what they are told, where they are started, who watches them. Thread-safe.
 */
public final class Confinement implements AutoCloseable {
    /** For workers that are not jailed. */
    public static final Confinement NONE = new Confinement(JailMode.OFF, 0, false, Spawner.PLAIN, List.of(), false,
        null, "", null);

    private static final Logger LOG = Logger.getLogger(Confinement.class);
    // Linux capability.h, bit numbers
    private static final int CAP_SETGID = 6;
    private static final int CAP_SETUID = 7;
    private static final int CAP_SYS_PTRACE = 19;
    /** Threads of a worker: those of the JVM and of a software GPU on a large machine; stops a bomb. */
    private static final int MAX_THREADS = 4096;
    /** Users for workers; two workers with one user meet after so many. */
    private static final int USERS = 65536;
    private static final String GPU_DEVICES = "/dev/nvidia";
    private static final int MAX_DEVICES = 256;

    private final JailMode mode;
    private final int firstUser;
    private final boolean isWatched;
    private final Spawner spawner;
    private final List<String> missing;
    private final boolean isTold;
    private final WorkerGroups groups; // null where there can be none
    private final String noGroups;
    private final MemoryLimit memory;
    private volatile String workers = "";

    private Confinement(JailMode mode, int firstUser, boolean isWatched, Spawner spawner, List<String> missing,
        boolean isTold, WorkerGroups groups, String noGroups, MemoryLimit memory) {
        this.mode = mode;
        this.firstUser = firstUser;
        this.isWatched = isWatched;
        this.spawner = spawner;
        this.missing = List.copyOf(missing);
        this.isTold = isTold;
        this.groups = groups;
        this.noGroups = noGroups;
        this.memory = memory;
    }

    /**
     * Looks at what the broker may do.
     *
     * @throws IllegalArgumentException when the jail must be complete and cannot be; says what is missing.
     */
    public static Confinement of(BrokerConfig.Worker config) {
        JailMode mode = config.jail();
        if (mode == JailMode.OFF) {
            return NONE;
        }
        List<String> missing = new ArrayList<>();
        boolean isTold = config.command().isEmpty();
        if (!isTold) {
            missing.add("anything of the worker's own doing (hawser.worker.command is not told)");
        }
        long capabilities = capabilities();
        boolean canChangeUser = has(capabilities, CAP_SETUID) && has(capabilities, CAP_SETGID);
        int firstUser = canChangeUser ? config.firstUid() : 0;
        // Without an own user a worker is the broker's child and its equal, so that the broker may look at it.
        boolean isWatched = firstUser == 0 || has(capabilities, CAP_SYS_PTRACE);
        Spawner spawner = Spawner.PLAIN;
        try {
            spawner = new IsolatedSpawner();
        } catch (PosixException e) {
            missing.add("network of its own (" + e.getMessage() + ")");
        }
        WorkerGroups groups = null;
        String noGroups = "";
        try {
            groups = WorkerGroups.open(Path.of("/proc/self"), ProcessHandle.current().pid(), MAX_THREADS);
        } catch (WorkerGroups.MissingException e) {
            noGroups = e.getMessage();
        }
        MemoryLimit memory = MemoryLimit.of(config.memoryMax().map(size -> OptionalLong.of(size.asLongValue()))
            .orElse(OptionalLong.empty()));
        Confinement made = new Confinement(mode, firstUser, isWatched, spawner, missing, isTold, groups, noGroups,
            memory);
        if (mode == JailMode.STRICT) {
            if (firstUser == 0) {
                missing.add("user of its own (only root can give one, and hawser.worker.first-uid must not be 0)");
            }
            if (!missing.isEmpty()) {
                made.close();
                throw new IllegalArgumentException("hawser.worker.jail=strict needs a complete jail; not possible: "
                    + String.join(", ", missing));
            }
        }
        return made;
    }

    private static boolean has(long capabilities, int number) {
        return (capabilities >>> number & 1) != 0;
    }

    /** What this process may do; nothing where the kernel does not say. */
    private static long capabilities() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("CapEff:")) {
                    return Long.parseUnsignedLong(line.substring("CapEff:".length()).strip(), 16);
                }
            }
        } catch (IOException e) {
            LOG.warnf("the broker's own rights cannot be read: %s", e.getMessage());
        }
        return 0;
    }

    /** Further arguments of a worker's command line. */
    public List<String> arguments(long worker) {
        if (mode == JailMode.OFF || !isTold) {
            return List.of();
        }
        List<String> arguments = new ArrayList<>(List.of("--jail", mode.name().toLowerCase(java.util.Locale.ROOT),
            "--watched", isWatched ? "1" : "0"));
        if (firstUser > 0) {
            arguments.addAll(List.of("--uid", Integer.toString(firstUser + (int) (worker % USERS))));
        }
        return arguments;
    }

    /** What starts workers. */
    public Spawner spawner() {
        return spawner;
    }

    /**
     * Limits a process that has just been started, where there are groups.
     *
     * @throws IOException when it cannot be; it must not go on then.
     */
    public void enter(long worker, int pid) throws IOException {
        if (groups != null) {
            groups.enter(worker, pid, memory.waiting());
        }
    }

    /**
     * Limits a worker to what its session needs of the machine's memory.
     *
     * @param backend as the worker calls it.
     * @param deviceBytes of its vGPU on all its GPUs.
     * @param regionBytes of the guest's shared memory; 0 over TCP.
     */
    public void serves(long worker, String backend, long deviceBytes, long regionBytes) {
        if (groups != null) {
            groups.limit(worker, memory.serving(backend, deviceBytes, regionBytes));
        }
    }

    /**
     * Gives a worker its part of the processors' time, where there are groups that have one.
     *
     * @param weight among all workers, 1 to 10,000.
     */
    public void weigh(long worker, int weight) {
        if (groups != null) {
            groups.weigh(worker, weight);
        }
    }

    /** A worker's process is gone; why, where the kernel has ended it for its memory, else empty. */
    public String left(long worker) {
        if (groups == null) {
            return "";
        }
        String reason = groups.ranOut(worker) ? "it wanted more of the machine's memory than it may have "
            + "(hawser.worker.memory-max)" : "";
        groups.leave(worker);
        return reason;
    }

    /**
     * Watches a worker that is in its jail and has not met its guest.
     *
     * @param listener number of its descriptor in the worker.
     * @param abuse told once, on some thread, when the worker must end.
     * @throws PosixException when the broker may not look into the worker.
     */
    public void watch(long worker, int pid, int listener, Consumer<String> abuse) throws PosixException {
        Set<String> devices = gpuDevices(pid);
        Watcher.start(worker, SystemCalls.takeDescriptor(pid, listener), devices, abuse);
    }

    /** The GPU's device files that a worker has open: what it opens again can only be one of these. */
    private static Set<String> gpuDevices(int pid) {
        Set<String> devices = new HashSet<>();
        try (DirectoryStream<Path> open = Files.newDirectoryStream(Path.of("/proc/" + pid + "/fd"))) {
            for (Path descriptor : open) {
                String target = Files.readSymbolicLink(descriptor).toString();
                if (target.startsWith(GPU_DEVICES) && devices.size() < MAX_DEVICES) {
                    devices.add(target);
                }
            }
        } catch (IOException e) {
            LOG.warnf("a worker's files cannot be seen, so that it opens none: pid=%d: %s", pid, e.getMessage());
        }
        return devices;
    }

    /** A worker has said what its jail is; one line of the log each time that is new. */
    public void told(String jail) {
        String kind = jail.replaceAll("user \\d+", "user of its own");
        if (!kind.isEmpty() && !kind.equals(workers)) {
            workers = kind;
            if (groups == null) {
                LOG.warnf("the workers' jail: %s", describe());
            } else {
                LOG.infof("the workers' jail: %s", describe());
            }
        }
    }

    /** One line for people: which parts are in force and which are not, and why. */
    public String describe() {
        if (mode == JailMode.OFF) {
            return "off";
        }
        String inForce = workers.isEmpty() ? "no worker is ready yet" : workers;
        String network = spawner == Spawner.PLAIN ? "" : "network of its own, ";
        String more = missing.isEmpty() ? "" : (inForce.contains("; not: ") ? ", " : "; not: ")
            + String.join(", ", missing);
        String limits = groups == null ? "no (" + noGroups + ")" : "memory and " + MAX_THREADS + " threads of each, "
            + (groups.noWeights().isEmpty() ? "processors by compute share"
                : "processors not by compute share (" + groups.noWeights() + ")");
        return mode.name().toLowerCase(java.util.Locale.ROOT) + ": " + network + inForce + more + "; cgroup: "
            + limits;
    }

    /** Ends the threads that start workers and remove their groups. */
    @Override
    public void close() {
        if (groups != null) {
            groups.close();
        }
        if (spawner instanceof IsolatedSpawner isolated) {
            isolated.close();
        }
    }
}
