package io.hawser.broker.pool;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.config.RdmaConfig;
import io.hawser.broker.jail.ComputeCache;
import io.hawser.broker.jail.Confinement;
import io.hawser.broker.machine.MathLibraries;
import io.hawser.broker.machine.RdmaDevices;
import io.hawser.broker.model.WorkerKind;
import io.hawser.shm.rdma.RdmaOptions;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jboss.logging.Logger;

/**
 * The command line and environment of a worker.
 *
 * @param command program and arguments.
 * @param environment {@code NAME=value} each, without secrets.
 * @param awaitedFlags further flags of the JVM for a worker for which a guest waits.
 * @param cache the JVM's cache for a start; null for none.
 * @param confinement the jail of the workers.
 */
public record WorkerCommand(List<String> command, List<String> environment, List<String> awaitedFlags,
    WorkerCache cache, Confinement confinement) {
    private static final Logger LOG = Logger.getLogger(WorkerCommand.class);
    private static final String VISIBLE = "CUDA_VISIBLE_DEVICES"; // for NVIDIA's driver
    private static final String GPUS = "HAWSER_GPUS"; // for the worker
    private static final String PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"; // for NVIDIA's driver, under MPS
    private static final String COMMUNICATION = "HAWSER_COMMUNICATION"; // for the worker
    private static final String MULTICAST = "NCCL_NVLS_ENABLE"; // for NCCL
    private static final String LATE_CONNECTIONS = "NCCL_RUNTIME_CONNECT"; // for NCCL
    private static final String NO_WARM_UP = "HAWSER_WARM_UP=off"; // for the worker
    private static final Path NVIDIA_DRIVER = Path.of("/dev/nvidiactl"); // made by the driver; workers look for it too
    private static final String MAIN_CLASS = "io.hawser.worker.WorkerMain";

    /**
     * Takes the configured command, or builds the default one.
     *
     * @param compiled the compute cache of the workers; null for none.
     * @throws IllegalArgumentException when the program or the worker's jars are missing; the message names the
     *     setting.
     */
    public static WorkerCommand of(BrokerConfig config, Map<String, String> environment, ComputeCache compiled) {
        BrokerConfig.Worker worker = config.worker();
        List<String> command = worker.command().map(WorkerCommand::split).orElseGet(() -> standard(config));
        if (command.isEmpty()) {
            throw new IllegalArgumentException("hawser.worker.command must name a program");
        }
        requireProgram(command.getFirst(), environment.getOrDefault("PATH", "/usr/bin:/bin"));
        List<String> passed = new ArrayList<>();
        for (String name : worker.environment()) {
            String value = environment.get(name.strip());
            if (value != null) {
                passed.add(name.strip() + "=" + value);
            }
        }
        if (config.rdma().enabled() && command.contains(MAIN_CLASS)) {
            command = new ArrayList<>(command);
            command.addAll(List.of("--rdma", rdma(config.rdma(), passed).text(), "--gpu-direct",
                config.rdma().gpuDirect().name().toLowerCase(Locale.ROOT)));
        }
        MathLibraries libraries = MathLibraries.find(config.libraries().path());
        passed.add(libraries.variable());
        libraries.libraries().forEach(library -> LOG.infof("math library %s", library));
        Confinement jail = Confinement.of(worker, libraries, compiled);
        jail.environment().forEach((name, value) -> set(passed, name, value));
        List<String> awaitedFlags = worker.command().isEmpty() ? split(config.pool().awaitedFlags().orElse(""))
            : List.of();
        return new WorkerCommand(List.copyOf(command), List.copyOf(passed), awaitedFlags, null, jail);
    }

    /**
     * Sets the folder of MPS in the environment, whatever the workers inherit.
     *
     * @param mps null with the software GPU, whose workers need none.
     */
    public WorkerCommand withMps(MpsFolder mps) {
        List<String> variables = new ArrayList<>(environment);
        set(variables, MpsFolder.VARIABLE, mps == null ? null : mps.path().toString());
        return new WorkerCommand(command, List.copyOf(variables), awaitedFlags, cache, confinement);
    }

    /**
     * Adds the build's cache for the workers' kind of GPU, where the settings enable it and the command is the default
     * one.
     *
     * @throws IOException if a file of the cache cannot be read.
     */
    public WorkerCommand withCache(BrokerConfig config) throws IOException {
        if (!config.worker().startCache() || config.worker().command().isPresent()) {
            return this;
        }
        String backend = config.gpu().backend();
        boolean isNvidia = backend.equals("nvidia") || !backend.equals("software") && Files.exists(NVIDIA_DRIVER);
        WorkerCache found = new WorkerCache(config.worker().dir().toAbsolutePath(),
            Path.of(System.getProperty("java.home")), isNvidia);
        return new WorkerCommand(command, environment, awaitedFlags, found, confinement);
    }

    /** Environment of a worker for which a guest waits: without the warm-up, which only speeds up the first calls. */
    List<String> environmentWithoutWarmUp() {
        List<String> variables = new ArrayList<>(environment);
        variables.add(NO_WARM_UP);
        return variables;
    }

    /**
     * Command line of the next worker.
     *
     * @param worker its number.
     * @param isAwaited whether a guest already waits for it.
     */
    List<String> line(long worker, boolean isAwaited) {
        List<String> line = new ArrayList<>(cache == null ? command : cache.use(command));
        if (isAwaited) {
            line.addAll(1, awaitedFlags);
        }
        line.addAll(confinement.arguments(worker));
        return line;
    }

    /** Command line of a helper, which has no jail; empty when the settings name another program. */
    List<String> helperLine() {
        if (!command.contains(MAIN_CLASS)) {
            return List.of();
        }
        List<String> line = new ArrayList<>(command);
        line.addAll(List.of("--helper", "1"));
        return line;
    }

    /** Disables the cache after a worker with this command has failed. */
    void disableCache() {
        if (cache != null) {
            cache.disable();
        }
    }

    /** The same command for workers of one kind. */
    WorkerCommand of(WorkerKind kind) {
        List<String> variables = new ArrayList<>(environment);
        if (!kind.gpus().isEmpty()) {
            set(variables, VISIBLE, String.join(",", kind.gpus().stream().map(uuid -> "GPU-" + uuid).toList()));
            set(variables, GPUS, String.join(",", kind.gpus()));
        }
        if (kind.percentage() < WorkerKind.WHOLE) {
            set(variables, PERCENTAGE, Integer.toString(kind.percentage()));
        }
        // NCCL must connect ranks when a communicator is made: later the session's thread would wait for other ranks.
        set(variables, LATE_CONNECTIONS, "0");
        Confinement jail = kind.network().isEmpty() ? confinement : confinement.communicating(kind.network());
        set(variables, COMMUNICATION, jail.communicates() ? "host" : null);
        if (jail.communicates()) {
            // Multicast objects are memory of the whole fabric, which no jail confines. An operator may allow them.
            if (variables.stream().noneMatch(variable -> variable.startsWith(MULTICAST + "="))) {
                variables.add(MULTICAST + "=0");
            }
        }
        return new WorkerCommand(command, List.copyOf(variables), awaitedFlags, cache, jail);
    }

    /** Sets a variable, whatever the workers inherit; null for none. */
    private static void set(List<String> variables, String name, String value) {
        variables.removeIf(variable -> variable.startsWith(name + "="));
        if (value != null) {
            variables.add(name + "=" + value);
        }
    }

    /** The workers' options of RDMA. A machine without a device is no failure: its sessions go by TCP. */
    private static RdmaOptions rdma(RdmaConfig config, List<String> environment) {
        RdmaOptions options;
        try {
            options = new RdmaOptions(config.device().orElse("").strip(), config.port(), config.gidIndex(),
                config.partition(), config.serviceLevel(), config.trafficClass(),
                Math.clamp(config.retry().toMillis(), 1, Integer.MAX_VALUE));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("hawser.rdma: " + e.getMessage(), e);
        }
        String problem = RdmaDevices.isReplaced(environment) ? ""
            : RdmaDevices.problem(RdmaDevices.FOLDER, options);
        if (!problem.isEmpty()) {
            LOG.warnf("sessions go by TCP although hawser.rdma.enabled is true: %s", problem);
        }
        return options;
    }

    private static List<String> standard(BrokerConfig config) {
        Path jars = config.worker().dir().toAbsolutePath();
        String classPath = classPath(jars);
        if (classPath.isEmpty()) {
            throw new IllegalArgumentException("the worker's jars are missing: hawser.worker.dir=" + jars
                + " (set it, or hawser.worker.command)");
        }
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(split(config.worker().flags()));
        command.add("-cp");
        command.add(classPath);
        command.add(MAIN_CLASS);
        command.add("--backend");
        command.add(config.gpu().backend());
        if (config.gpu().software().devices() != 1) {
            command.add("--devices");
            command.add(Integer.toString(config.gpu().software().devices()));
        }
        return List.copyOf(command);
    }

    /** All jars of a folder, sorted by name, because the cache depends on their order; empty where there are none. */
    private static String classPath(Path folder) {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(Path::toString).filter(file -> file.endsWith(".jar")).sorted()
                .collect(Collectors.joining(File.pathSeparator));
        } catch (IOException e) {
            // An unreadable folder counts as empty; the caller's error names it.
            return "";
        }
    }

    private static void requireProgram(String program, String path) {
        List<Path> candidates = new ArrayList<>();
        if (program.contains("/")) {
            candidates.add(Path.of(program));
        } else {
            for (String folder : path.split(":")) {
                candidates.add(Path.of(folder.isEmpty() ? "." : folder, program));
            }
        }
        if (candidates.stream().noneMatch(c -> Files.isRegularFile(c) && Files.isExecutable(c))) {
            throw new IllegalArgumentException("the worker's program is missing or not executable: program=" + program
                + " (hawser.worker.command)");
        }
    }

    /** Splits at spaces; double quotes keep a part together and are removed. */
    static List<String> split(String line) {
        List<String> parts = new ArrayList<>();
        StringBuilder part = new StringBuilder();
        boolean quoted = false;
        boolean started = false;
        for (char c : line.toCharArray()) {
            if (c == '"') {
                quoted = !quoted;
                started = true;
            } else if (Character.isWhitespace(c) && !quoted) {
                if (started) {
                    parts.add(part.toString());
                    part.setLength(0);
                    started = false;
                }
            } else {
                part.append(c);
                started = true;
            }
        }
        if (quoted) {
            throw new IllegalArgumentException("quotes must be closed: command=" + line);
        }
        if (started) {
            parts.add(part.toString());
        }
        return List.copyOf(parts);
    }
}
