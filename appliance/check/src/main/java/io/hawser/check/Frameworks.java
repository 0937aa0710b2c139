package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;

/** Runs the scripts of the frameworks in every way. */
final class Frameworks {
    /** A case's round trips of a step are the difference of two runs with so many and twice as many steps. */
    private static final int COUNTED_STEPS = 20;
    /** Runs at the same time while round trips are counted: each has a session and a framework in memory. */
    private static final int MOST_AT_ONCE = 8;
    private static final String HELPERS = "hawser_cases";
    private static final Set<String> OTHERS = Set.of(HELPERS, "torch_steps"); // the second one is of --moves
    private static final String ENDING = ".py";
    /** Scripts of several processes, one for each GPU, which exchange data. */
    private static final Set<String> COMMUNICATING = Set.of("torch_distributed");
    private static final String COMMUNICATION = "hawser.vgpus.default.communication=host";

    /** What the command line says. */
    static final class Settings {
        String python = System.getenv().getOrDefault("HAWSER_PYTHON", "python3");
        List<String> only = List.of(); // SCRIPT or SCRIPT:CASE; empty for all
        int runs = 1;
        Set<Way> carriers = EnumSet.of(Way.SHM, Way.TCP);
        String backend = "auto";
        final List<String> broker = new ArrayList<>();
        Duration timeout = Duration.ofSeconds(300);
    }

    private final Settings settings;
    private final Installation installation;
    private final Children children;
    private final Workplace workplace;
    private final Progress progress;
    private final Guests guests;
    private final boolean hasDriver;
    private final List<String> skipped = new ArrayList<>();
    private final Map<String, String> versions = new TreeMap<>();
    private final List<String> gpus = new ArrayList<>();
    private final List<String> defects = new ArrayList<>();

    Frameworks(Settings settings, Installation installation, Children children, Workplace workplace,
        Progress progress) {
        this.settings = settings;
        this.installation = installation;
        this.children = children;
        this.workplace = workplace;
        this.progress = progress;
        NativeCuda cuda = NativeCuda.here();
        this.guests = new Guests(installation, cuda, children, workplace.folder());
        this.hasDriver = cuda.driver().isPresent();
    }

    /** All scripts and the cases of those whose framework is installed, as {@code --only} takes them. */
    List<String> names() {
        List<String> names = new ArrayList<>();
        for (String script : scripts()) {
            names.add(script);
            Guests.Started started = guests.startScript(null, null, settings.python, path(script), List.of("--list"));
            children.await(started.process(), PythonLibraries.LIMIT);
            ProgramRun run = ProgramRun.of(started, false, 0);
            if (run.isPassed()) {
                run.out().lines().forEach(name -> names.add(script + ":" + name));
            }
        }
        return names;
    }

    private List<String> scripts() {
        try (Stream<Path> files = Files.list(installation.frameworks())) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(ENDING))
                .map(name -> name.substring(0, name.length() - ENDING.length())).filter(name -> !OTHERS.contains(name))
                .sorted().toList();
        } catch (IOException e) {
            throw new CheckException("the scripts cannot be read: " + installation.frameworks(), e);
        }
    }

    private Path path(String script) {
        return installation.frameworks().resolve(script + ENDING);
    }

    /** The wanted cases by script; an empty list means all cases. */
    private Map<String, List<String>> wanted() {
        List<String> all = scripts();
        Map<String, List<String>> wanted = new LinkedHashMap<>();
        if (settings.only.isEmpty()) {
            all.forEach(script -> wanted.put(script, new ArrayList<>()));
        }
        for (String name : settings.only) {
            String[] parts = name.split(":", 2);
            if (!all.contains(parts[0])) {
                throw new CheckException("no such script: " + parts[0] + " (there are: " + String.join(", ", all) + ")",
                    CheckException.REFUSED);
            }
            List<String> cases = wanted.computeIfAbsent(parts[0], key -> new ArrayList<>());
            if (parts.length == 2) {
                cases.add(parts[1]);
            }
        }
        return wanted;
    }

    /** Runs all. */
    FrameworkReport run() {
        Instant began = Instant.now();
        Map<String, List<String>> wanted = wanted();
        List<String> broker = new ArrayList<>(settings.broker);
        if (broker.stream().noneMatch(setting -> setting.startsWith(PythonLibraries.SETTING + "="))) {
            String folders = PythonLibraries.folders(guests, children, settings.python, path(HELPERS));
            if (!folders.isEmpty()) {
                broker.add(PythonLibraries.SETTING + "=" + folders);
            }
        }
        Map<String, List<String>> communicating = new LinkedHashMap<>(wanted);
        communicating.keySet().retainAll(COMMUNICATING);
        wanted.keySet().removeAll(COMMUNICATING);
        List<FrameworkCase> cases = new ArrayList<>(run(wanted, broker, "frameworks"));
        broker.addFirst(COMMUNICATION); // the command line's settings follow, and replace it
        cases.addAll(run(communicating, broker, "distributed"));
        return new FrameworkReport(began, Machine.here(), gpus, versions, skipped, cases, defects);
    }

    /** Runs scripts through a broker of their own. */
    private List<FrameworkCase> run(Map<String, List<String>> wanted, List<String> broker, String name) {
        List<FrameworkCase> cases = new ArrayList<>();
        if (wanted.isEmpty()) {
            return cases;
        }
        progress.phase("starting a broker");
        BrokerChild child = BrokerChild.start(installation, children, workplace, System.getenv(), settings.backend,
            name, 2, broker.stream().map(setting -> "-D" + setting).toList());
        try {
            boolean software = child.get("/api/v1/broker").path("backend").asText().equals("software");
            Set<Way> ways = EnumSet.copyOf(settings.carriers);
            if (!software && hasDriver) {
                ways.add(Way.NATIVE);
            }
            wanted.forEach((script, only) -> cases.addAll(run(script, only, ways, child)));
            gpus.clear(); // a broker that has just started may not know all of them
            child.get("/api/v1/gpus").forEach(gpu -> gpus.add(gpu.path("name").asText()));
        } finally {
            child.close();
        }
        defects.addAll(BrokerLog.defects(workplace.folder().resolve(name + ".log")));
        return cases;
    }

    private List<FrameworkCase> run(String script, List<String> only, Set<Way> ways, BrokerChild broker) {
        List<String> arguments = only.stream().flatMap(name -> Stream.of("--case", name)).toList();
        Map<Way, List<FrameworkRun>> runs = new EnumMap<>(Way.class);
        for (int i = 0; i < settings.runs; i++) { // ways in turn, so that a change of the machine meets all of them
            for (Way way : ways) {
                FrameworkRun run = start(script, arguments, way, broker);
                if (!run.missing().isEmpty()) {
                    skipped.add(script + ": " + run.missing() + " is not installed");
                    return List.of();
                }
                // An early end of the program leaves no report, but these lines.
                progress.phase("%s, %s, %d of %d: %s", script, way.label(), i + 1, settings.runs, run.summary());
                if (!run.framework().isEmpty()) {
                    versions.put(script, run.framework());
                }
                runs.computeIfAbsent(way, key -> new ArrayList<>()).add(run);
            }
        }
        Set<String> names = new LinkedHashSet<>(only);
        runs.values().forEach(list -> list.forEach(run -> names.addAll(run.cases().keySet())));
        if (names.isEmpty()) {
            names.add("(start)");
        }
        List<FrameworkCase> plain =
            names.stream().map(name -> new FrameworkCase(script, name, runs, Map.of())).toList();
        // Counts do not depend on time, so these runs share the processors.
        int threads = Math.clamp(Runtime.getRuntime().availableProcessors() / 2, 1, MOST_AT_ONCE);
        try (ExecutorService counting = Executors.newFixedThreadPool(threads)) {
            List<Future<FrameworkCase>> counted = plain.stream().map(one -> counting.submit(() -> one.steps() == 0 ? one
                : new FrameworkCase(script, one.name(), runs, roundTrips(script, one, ways, broker)))).toList();
            List<FrameworkCase> cases = new ArrayList<>();
            for (Future<FrameworkCase> one : counted) {
                cases.add(one.get());
            }
            return cases;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CheckException("interrupted", e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof CheckException known ? known : new CheckException("a run failed", e);
        }
    }

    /** The round trips of a step, over each carrier on which the case is right. */
    private Map<Way, Double> roundTrips(String script, FrameworkCase plain, Set<Way> ways, BrokerChild broker) {
        Map<Way, Double> counts = new EnumMap<>(Way.class);
        for (Way way : ways) {
            if (way != Way.NATIVE && plain.verdict(way) == ProgramResult.Verdict.RIGHT) {
                long few = counted(script, plain.name(), COUNTED_STEPS, way, broker);
                long many = counted(script, plain.name(), 2 * COUNTED_STEPS, way, broker);
                counts.put(way, (double) (many - few) / COUNTED_STEPS);
            }
        }
        return counts;
    }

    private long counted(String script, String name, int steps, Way way, BrokerChild broker) {
        return start(script, List.of("--case", name, "--steps", Integer.toString(steps)), way, broker).program()
            .roundTrips();
    }

    private FrameworkRun start(String script, List<String> arguments, Way way, BrokerChild broker) {
        progress.step("%s %s, %s", script, String.join(" ", arguments), way.label());
        long start = System.nanoTime();
        Guests.Started started = guests.startScript(way, broker, settings.python, path(script), arguments);
        boolean ended = children.await(started.process(), settings.timeout);
        return FrameworkRun.of(ProgramRun.of(started, !ended, (System.nanoTime() - start) * 1e-9));
    }
}
