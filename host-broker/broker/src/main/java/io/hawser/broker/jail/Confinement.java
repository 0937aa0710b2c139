package io.hawser.broker.jail;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.machine.MathLibraries;
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
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jboss.logging.Logger;

/**
 * The broker's part of its workers' jail: their arguments, the way of starting them, their limits and their watchers.
 * Thread-safe.
 */
public final class Confinement implements AutoCloseable {
    /** For workers that are not jailed. */
    public static final Confinement NONE = off(new MathLibraries(Map.of(), Map.of()));

    /** Weight of a worker that starts while a guest waits for it: that of a full compute share. */
    public static final int AWAITED_WEIGHT = 10_000;
    /** Weight of a worker that starts ahead. A much smaller weight could exceed the time limit of a start. */
    public static final int AHEAD_WEIGHT = AWAITED_WEIGHT / 10;

    private static final Logger LOG = Logger.getLogger(Confinement.class);
    // Linux capability.h, bit numbers
    private static final int CAP_SETGID = 6;
    private static final int CAP_SETUID = 7;
    private static final int CAP_SYS_PTRACE = 19;
    /** Limit of a worker's threads, enough for the JVM and a software GPU on a large machine; stops a fork bomb. */
    private static final int MAX_THREADS = 4096;
    /** Number of users for workers; after so many workers a user is used again. */
    private static final int USERS = 65536;
    private static final String GPU_DEVICES = "/dev/nvidia";
    private static final int MAX_DEVICES = 256;

    private final JailMode mode;
    private final int firstUser;
    private final boolean isWatched;
    private final Spawner spawner;
    private final List<String> missing;
    private final boolean takesArguments;
    private final WorkerGroups groups; // null where the broker cannot create any
    private final String noGroups;
    private final MemoryLimit memory;
    private final MathLibraries libraries;
    private final ComputeCache cache; // null for none
    private final String network; // the vGPU whose workers share the spawner's network; empty for none
    private final SharedFiles shared; // of these workers; null without a network
    private final AtomicInteger networkUser = new AtomicInteger(); // of all its workers; 0 before the first
    private volatile String workers = "";

    private Confinement(JailMode mode, int firstUser, boolean isWatched, Spawner spawner, List<String> missing,
        boolean takesArguments, WorkerGroups groups, String noGroups, MemoryLimit memory,
        MathLibraries libraries, ComputeCache cache, String network) {
        this.mode = mode;
        this.firstUser = firstUser;
        this.isWatched = isWatched;
        this.spawner = spawner;
        this.missing = List.copyOf(missing);
        this.takesArguments = takesArguments;
        this.groups = groups;
        this.noGroups = noGroups;
        this.memory = memory;
        this.libraries = libraries;
        this.cache = cache;
        this.network = network;
        shared = network.isEmpty() ? null : new SharedFiles();
    }

    private static Confinement off(MathLibraries libraries) {
        return new Confinement(JailMode.OFF, 0, false, Spawner.PLAIN, List.of(), false, null, "", null, libraries,
            null, "");
    }

    /**
     * Checks the broker's rights.
     *
     * @param cache the compute cache of the workers; null for none.
     * @throws IllegalArgumentException when the jail must be complete and cannot be; the message names the missing
     * parts.
     */
    public static Confinement of(BrokerConfig.Worker config, MathLibraries libraries, ComputeCache cache) {
        JailMode mode = config.jail();
        if (mode == JailMode.OFF) {
            return off(libraries);
        }
        List<String> missing = new ArrayList<>();
        boolean takesArguments = config.command().isEmpty();
        if (!takesArguments) {
            missing.add("the worker's own steps (the program of hawser.worker.command receives no arguments for them)");
        }
        long capabilities = capabilities();
        boolean canChangeUser = has(capabilities, CAP_SETUID) && has(capabilities, CAP_SETGID);
        int firstUser = canChangeUser ? config.firstUid() : 0;
        // Without a user of its own a worker is the broker's child with the same user, so the broker may inspect it.
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
        Confinement made = new Confinement(mode, firstUser, isWatched, spawner, missing, takesArguments, groups,
            noGroups, memory, libraries, cache, "");
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

    /**
     * The jail of the workers of one vGPU that communicate: they share a network with nothing but loopback, a user and
     * the names of shared memory, and may make sockets. The caller closes it.
     *
     * @param vgpu the vGPU's name.
     * @return this jail, after a line in the log, where the machine allows no such network.
     */
    public Confinement communicating(String vgpu) {
        String reason = spawner == Spawner.PLAIN ? "workers have no network of their own" : "";
        try {
            if (reason.isEmpty()) {
                return new Confinement(mode, firstUser, isWatched, new IsolatedSpawner(), missing, takesArguments,
                    groups, noGroups, memory, libraries, cache, vgpu);
            }
        } catch (PosixException e) {
            reason = e.getMessage();
        }
        LOG.warnf("the processes of a vGPU with communication cannot communicate: vgpu=%s: %s", vgpu, reason);
        return this;
    }

    /** Whether the workers share the network of a vGPU. */
    public boolean communicates() {
        return !network.isEmpty();
    }

    private static boolean has(long capabilities, int number) {
        return (capabilities >>> number & 1) != 0;
    }

    /** The effective capabilities of this process; none where the kernel does not report them. */
    private static long capabilities() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("CapEff:")) {
                    return Long.parseUnsignedLong(line.substring("CapEff:".length()).strip(), 16);
                }
            }
        } catch (IOException e) {
            LOG.warnf("the broker's own capabilities cannot be read: %s", e.getMessage());
        }
        return 0;
    }

    /** Additional arguments of a worker's command line. */
    public List<String> arguments(long worker) {
        if (mode == JailMode.OFF || !takesArguments) {
            return List.of();
        }
        List<String> arguments = new ArrayList<>(List.of("--jail", mode.name().toLowerCase(java.util.Locale.ROOT),
            "--watched", isWatched ? "1" : "0"));
        if (communicates()) {
            arguments.addAll(List.of("--sockets", "1"));
        }
        if (firstUser > 0) {
            arguments.addAll(List.of("--uid", Integer.toString(user(worker))));
        }
        return arguments;
    }

    /** Workers that share a network have the user of its first worker. */
    private int user(long worker) {
        int own = firstUser + (int) (worker % USERS);
        return !communicates() || networkUser.compareAndSet(0, own) ? own : networkUser.get();
    }

    /** Variables of a worker, by name. */
    public Map<String, String> environment() {
        return usesCache() ? cache.environment() : Map.of();
    }

    /** Without a watcher the driver would open the files itself, and all vGPUs would share them. */
    private boolean usesCache() {
        return cache != null && mode != JailMode.OFF && takesArguments && isWatched;
    }

    /** The way of starting workers. */
    public Spawner spawner() {
        return spawner;
    }

    /**
     * Limits a process that has just been started, where control groups exist.
     *
     * @param cpuWeight as in {@link #weigh}.
     * @throws IOException when the limit cannot be set; the process must then be ended.
     */
    public void enter(long worker, int pid, int cpuWeight) throws IOException {
        if (groups != null) {
            groups.enter(worker, pid, memory.beforeSession(), cpuWeight);
        }
    }

    /**
     * Sets a worker's memory limit to the needs of its session.
     *
     * @param backend the backend's name from the worker.
     * @param deviceBytes memory of its vGPU on all its GPUs.
     * @param regionBytes size of the guest's shared memory; 0 over TCP.
     */
    public void limitToSession(long worker, String backend, long deviceBytes, long regionBytes) {
        if (groups != null) {
            groups.limit(worker, memory.duringSession(backend, deviceBytes, regionBytes));
        }
    }

    /**
     * Sets a worker's weight for processor time, where control groups support it.
     *
     * @param weight among all workers, 1 to 10,000.
     */
    public void weigh(long worker, int weight) {
        if (groups != null) {
            groups.weigh(worker, weight);
        }
    }

    /** Releases an ended worker; returns the reason when the kernel ended it for its memory use, else "". */
    public String leave(long worker) {
        if (groups == null) {
            return "";
        }
        String reason = groups.ranOut(worker) ? "it exceeded its limit of the machine's memory "
            + "(hawser.worker.memory-max)" : "";
        groups.leave(worker);
        return reason;
    }

    /**
     * Watches a jailed worker that has not yet received a guest.
     *
     * @param listener number of its descriptor in the worker.
     * @param abuse called once, on any thread, when the worker must end.
     * @return must receive the name of the vGPU that the worker will serve, before the worker does.
     * @throws PosixException when the broker may not inspect the worker.
     */
    public Consumer<String> watch(long worker, int pid, int listener, Consumer<String> abuse) throws PosixException {
        Set<String> devices = gpuDevices(pid);
        List<WorkerFiles> files = new ArrayList<>();
        if (shared != null) {
            files.add(shared.of(worker));
        }
        CacheFiles compiled = usesCache() ? cache.files() : null;
        if (compiled != null) {
            files.add(compiled);
        }
        Watcher.start(worker, SystemCalls.takeDescriptor(pid, listener), pid, devices, libraries.files(),
            files, shared != null, abuse);
        return vgpu -> {
            if (compiled != null) {
                compiled.serve(cache.folder(vgpu));
            }
        };
    }

    /** The GPU's device files that a worker has open; only these can be opened for it later. */
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
            LOG.warnf("a worker's open files cannot be read, so it can open none later: pid=%d: %s", pid,
                e.getMessage());
        }
        return devices;
    }

    /** Takes a worker's description of its jail; logs it when it differs from the last one. */
    public void reportJail(String jail) {
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

    /** The math libraries whose files workers may open. */
    public MathLibraries libraries() {
        return libraries;
    }

    /** One line for people: the active parts, the missing parts, and the reasons. */
    public String describe() {
        if (mode == JailMode.OFF) {
            return "off";
        }
        String inForce = workers.isEmpty() ? "no worker is ready yet" : workers;
        String own = spawner == Spawner.PLAIN ? "" : communicates() ? "network of vGPU " + network + ", "
            : "network of its own, ";
        String more = missing.isEmpty() ? "" : (inForce.contains("; not: ") ? ", " : "; not: ")
            + String.join(", ", missing);
        String limits = groups == null ? "no (" + noGroups + ")" : "memory and " + MAX_THREADS + " threads of each, "
            + (groups.noWeights().isEmpty() ? "processors by compute share"
                : "processors not by compute share (" + groups.noWeights() + ")");
        return mode.name().toLowerCase(java.util.Locale.ROOT) + ": " + own + inForce + more + "; cgroup: "
            + limits;
    }

    /** Ends the threads that start workers and remove their control groups; of a vGPU's network, the first alone. */
    @Override
    public void close() {
        if (groups != null && !communicates()) {
            groups.close();
        }
        if (spawner instanceof IsolatedSpawner isolated) {
            isolated.close();
        }
    }
}
