package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The program hawser-check. */
public final class CheckMain {
    private static final int AGREE = 0;
    private static final int DIFFER = 1;
    private static final int USAGE = 2;
    private static final int NOT_CHECKED = 3;
    private static final int STANDARD_POOL = 2; // the default of hawser.worker.pool-size
    private static final Duration PROBE_LIMIT = Duration.ofSeconds(180);
    /** The programs of a quick run, if installed: a few of each kind. */
    private static final List<String> QUICK = List.of("drv_vector_add", "drv_matrix_mul", "drv_streams_events",
        "drv_printf", "drv_large_copies", "drv_errors", "drv_mapped_memory", "vector_add", "reduction",
        "streams_events", "pinned_copies", "device_printf", "managed_memory", "static/vector_add", "static/rdc");

    /** A signal is ending the process; further failures are its consequence. */
    private static volatile boolean ending;

    private final Options options;
    private final Installation installation;
    private final Progress progress;
    private final Children children;
    private final Workplace workplace;

    private CheckMain(Options options, Installation installation, Progress progress, Children children,
        Workplace workplace) {
        this.options = options;
        this.installation = installation;
        this.progress = progress;
        this.children = children;
        this.workplace = workplace;
    }

    /** Runs the check; ends the process with one of the exit codes of {@link Options#USAGE}. */
    public static void main(String[] arguments) {
        System.exit(run(arguments));
    }

    private static int run(String... arguments) {
        Options options;
        try {
            options = Options.parse(arguments);
        } catch (UsageException e) {
            System.err.println("hawser-check: " + e.getMessage() + " (see --help)");
            return USAGE;
        }
        if (options.help()) {
            System.out.print(Options.USAGE);
            return AGREE;
        }
        try (Progress progress = new Progress(); Children children = new Children();
            Workplace workplace = Workplace.make(options.carriers().contains(Way.SHM), options.keep())) {
            // After Ctrl-C or SIGTERM main does not return, so this hook cleans up. Both steps may run twice.
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                ending = true;
                children.close();
                workplace.close();
            }));
            Results results =
                new CheckMain(options, Installation.ofLauncher(), progress, children, workplace).check();
            progress.close();
            System.out.print(TextReport.of(results, options.markdown()));
            System.out.flush();
            options.json().ifPresent(file -> JsonReport.write(results, file));
            if (!results.isGood()) {
                workplace.keep();
            }
            if (workplace.isKept()) {
                progress.phase("logs and outputs are in %s", workplace.folder());
            }
            return results.isGood() ? AGREE : DIFFER;
        } catch (CheckException e) {
            if (!ending) {
                System.err.println("hawser-check: " + e.getMessage());
            }
            return NOT_CHECKED;
        }
    }

    private Results check() {
        Instant began = Instant.now();
        long start = System.nanoTime();
        NativeCuda cuda = new NativeCuda(options.cudaLibrary(), System.getenv(), ldconfig());
        Guests guests = new Guests(installation, cuda, children, workplace.folder());
        List<String> names = options.runPrograms() ? programs() : List.of();

        progress.phase("starting a broker%s", workplace.region() == null ? ""
            : " with a region of " + workplace.regionMib() + " MiB");
        int pool = Math.clamp(Runtime.getRuntime().availableProcessors() / 2, 1, 8);
        List<ProgramResult> programs = List.of();
        Benchmarks benchmarks;
        JsonNode gpu;
        String nativeMissing;
        Set<Way> ways = EnumSet.copyOf(options.carriers());
        try (BrokerChild broker = startBroker("broker", cuda, pool, List.of())) {
            boolean software = broker.get("/api/v1/broker").path("backend").asText().equals("software");
            Way carrier = options.carriers().iterator().next();
            gpu = probe(guests, carrier, broker);
            nativeMissing = software ? "the broker uses the software GPU" : whyNothingNative(guests, cuda);
            if (nativeMissing.isEmpty()) {
                ways.add(Way.NATIVE);
            }
            progress.phase("%s; %s", gpu.path("device").asText(),
                nativeMissing.isEmpty() ? "native runs beside it" : "nothing runs natively: " + nativeMissing);
            if (!names.isEmpty()) {
                progress.phase("%d programs in %d ways", names.size(), ways.size());
                programs = new ProgramCheck(guests, options.timeout(), progress).run(names, ways, broker);
            }
            benchmarks = new Benchmarks(guests, Benchmarks.Extent.of(options, software, maxCopyMib()), progress);
            if (!names.isEmpty()) {
                benchmarks.awaitPrograms(broker);
            }
            if (options.benchmarks()) {
                benchmarks.limits(carrier, broker);
                benchmarks.measure(ways, broker);
                benchmarks.starts(ways, broker, "start.");
                benchmarks.tenants(ways, broker);
                benchmarks.idle(options.carriers(), broker);
            }
        }
        if (options.benchmarks()) {
            try (BrokerChild cold = startBroker("cold-broker", cuda, 0, List.of())) {
                benchmarks.starts(options.carriers(), cold, "start.cold_");
            }
        }
        if (options.atOnce() > 0) {
            try (BrokerChild standard = startBroker("standard-broker", cuda, STANDARD_POOL, settingsAtOnce())) {
                benchmarks.atOnce(ways, standard, options.atOnce());
            }
        }
        return new Results(version(), began, (System.nanoTime() - start) * 1e-9, Machine.here(), gpu, nativeMissing,
            options.carriers(), programs, Measure.all(options.tenants(), options.atOnce()), benchmarks.figures(),
            benchmarks.failures());
    }

    /** Places for all sessions that begin at once. */
    private List<String> settingsAtOnce() {
        List<String> settings = new ArrayList<>(List.of("-Dhawser.sessions.max=" + options.atOnce(),
            "-Dhawser.sessions.max-waiting=" + options.atOnce()));
        if (workplace.region() != null) {
            settings.add("-Dhawser.regions.check.slots=" + options.atOnce());
        }
        return settings;
    }

    private BrokerChild startBroker(String name, NativeCuda cuda, int pool, List<String> settings) {
        List<String> all = new ArrayList<>(settings);
        options.settings().forEach(setting -> all.add("-D" + setting));
        return BrokerChild.start(installation, children, workplace, cuda.brokerEnvironment(), options.backend(), name,
            pool, all);
    }

    /** The region must hold the pinned memory of the longest copy, and more. */
    private long maxCopyMib() {
        return workplace.region() == null ? Long.MAX_VALUE : Math.max(1, workplace.regionMib() / 4);
    }

    private List<String> programs() {
        List<String> all = installation.testPrograms();
        if (options.programs().isEmpty()) {
            return options.quick() ? QUICK.stream().filter(all::contains).toList() : all;
        }
        if (options.programs().equals(List.of("all"))) {
            return all;
        }
        for (String name : options.programs()) {
            if (!all.contains(name)) {
                throw new CheckException("there is no such program: " + name + " (known: "
                    + String.join(", ", all) + ")");
            }
        }
        return options.programs();
    }

    /** The GPU's properties as a program sees them. */
    private JsonNode probe(Guests guests, Way way, BrokerChild broker) {
        Guests.Started program = guests.start(way, broker, Installation.BENCHMARK, List.of("device"));
        boolean ended = children.await(program.process(), PROBE_LIMIT);
        ProgramRun run = ProgramRun.of(program, !ended, 0);
        if (!run.isPassed()) {
            throw new CheckException("no GPU " + (way == Way.NATIVE ? "natively" : "over " + way.label()) + ": "
                + (run.hung() ? "a program did not end within " + PROBE_LIMIT.toSeconds() + " s" : run.lastLine())
                // The guest library prints the cause if it knows it.
                + run.err().lines().filter(line -> line.startsWith("hawser:")).findFirst().map(l -> "; " + l)
                    .orElse(""));
        }
        return program.lines().getFirst();
    }

    /** The reason why programs cannot run natively; empty if they can. */
    private String whyNothingNative(Guests guests, NativeCuda cuda) {
        if (cuda.driver().isEmpty()) {
            return "no libcuda.so.1 of an NVIDIA driver was found";
        }
        try {
            probe(guests, Way.NATIVE, null);
            return "";
        } catch (CheckException e) {
            return e.getMessage();
        }
    }

    private String ldconfig() {
        for (String program : List.of("/sbin/ldconfig", "/usr/sbin/ldconfig")) {
            if (Files.isExecutable(Path.of(program))) {
                Path out = workplace.folder().resolve("ldconfig");
                Process process = children.start(List.of(program, "-p"), Map.of(), out, out);
                children.await(process, PROBE_LIMIT);
                try {
                    return Files.readString(out);
                } catch (IOException e) {
                    throw new CheckException("the output of ldconfig cannot be read", e);
                }
            }
        }
        return "";
    }

    private String version() {
        Path file = installation.launcher().resolveSibling("../VERSION").normalize();
        try {
            return Files.exists(file) ? Files.readString(file).strip() : "(source tree)";
        } catch (IOException e) {
            throw new CheckException("the version cannot be read: " + file, e);
        }
    }
}
