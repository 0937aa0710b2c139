package io.hawser.check;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.zip.GZIPInputStream;

/**
 * Compares random calls natively, over shared memory and over TCP. Without an NVIDIA GPU recorded native runs take
 * native CUDA's place; then only result codes count.
 */
final class Errors {
    /**
     * The recorded runs: outputs of {@code random_calls --seed 1 --calls 5000 --cases} on an H200 with driver 580,
     * packed by {@code gzip -9n}. A record names its functions, so functions that are described later do not change its
     * calls. Two records with different functions have different calls. A record without the fixed calls of
     * {@code --cases} leaves them to the comparison of the carriers.
     */
    static final List<String> RECORDED = List.of("native-errors.gz", "native-errors-2.gz");
    static final int RECORDED_SEED = 1;
    static final int RECORDED_CALLS = 5000;
    private static final String PROGRAM = "random_calls";
    private static final String PICK = "--pick";
    private static final Duration LIMIT = Duration.ofMinutes(20);
    private static final int STEP_MS = 500;
    private static final int SHRUNK_DIFFERENCES = 10;

    private final Settings settings;
    private final Installation installation;
    private final boolean hasDriver;
    private final Children children;
    private final Workplace workplace;
    private final Progress progress;
    private final Guests guests;
    private final ObjectNode json = new ObjectMapper().createObjectNode();
    private BrokerChild broker;
    private boolean software;
    private List<String> functions = List.of();

    /**
     * What to compare.
     *
     * @param calls number of calls.
     * @param nativeTrace a native run of the same seed and number; empty for a run here, or the recorded ones.
     * @param json file for the results.
     */
    record Settings(long seed, int calls, String backend, Optional<Path> nativeTrace, Optional<Path> json) {}

    Errors(Settings settings, Installation installation, Children children, Workplace workplace, Progress progress) {
        this.settings = settings;
        this.children = children;
        this.workplace = workplace;
        this.progress = progress;
        this.installation = installation;
        NativeCuda cuda = NativeCuda.here();
        this.guests = new Guests(installation, cuda, children, workplace.folder());
        this.hasDriver = cuda.driver().isPresent();
    }

    /** Runs all and prints the differences. Returns whether there is none, and no stale entry. */
    boolean run() {
        broker = BrokerChild.start(installation, children, workplace, System.getenv(), settings.backend, "errors", 2);
        try {
            software = broker.get("/api/v1/broker").path("backend").asText().equals("software");
            boolean isNative = !software && hasDriver && settings.nativeTrace.isEmpty();
            List<String> lists = new ArrayList<>(List.of("accepted-errors"));
            List<String> carrierLists = new ArrayList<>(List.of("accepted-errors-carriers"));
            if (software) {
                lists.add("accepted-errors-software");
            }
            if (settings.seed != RECORDED_SEED || settings.calls > RECORDED_CALLS) {
                lists.add("accepted-errors-other-seeds");
                carrierLists.add("accepted-errors-carriers-other-seeds");
            }
            AcceptedDifferences accepted = AcceptedDifferences.ofResources(lists);
            AcceptedDifferences acceptedOfCarriers = AcceptedDifferences.ofResources(carrierLists);
            boolean good = true;
            if (isNative) {
                good = compare("", run(Way.NATIVE, List.of()), true, accepted, acceptedOfCarriers);
            } else {
                List<Path> records = settings.nativeTrace.map(Path::toAbsolutePath).map(List::of)
                    .orElseGet(this::unpack);
                for (int i = 0; i < records.size(); i++) {
                    String suffix = records.size() == 1 ? "" : " " + (i + 1);
                    good &= compare(suffix, recorded(records.get(i)), false, accepted, acceptedOfCarriers);
                }
            }
            // One of several records, another seed or GPU need not show all of them.
            boolean all = software && settings.nativeTrace.isEmpty() && settings.seed == RECORDED_SEED
                && settings.calls >= RECORDED_CALLS;
            good &= reportStale(accepted, all) & reportStale(acceptedOfCarriers, all);
            settings.json.ifPresent(this::write);
            return good;
        } finally {
            broker.close();
        }
    }

    /** Compares Hawser with a native run, and the carriers with each other. `suffix` names the run in the report. */
    private boolean compare(String suffix, Trace first, boolean isNative, AcceptedDifferences accepted,
        AcceptedDifferences acceptedOfCarriers) {
        List<String> ends = first.processEnds().isEmpty() ? List.of() : List.of("--end-after", first.processEnds());
        Trace shm = run(Way.SHM, ends);
        if (!first.description().equals(shm.description())) {
            throw new CheckException("the native run is of other functions, parameters or values than those of "
                + "this " + PROGRAM + ", which gives other calls: description \"" + first.description()
                + "\" and \"" + shm.description() + "\"; record it again", CheckException.REFUSED);
        }
        Trace tcp = run(Way.TCP, ends);
        boolean good = callsAll(shm);
        if (!first.hasCases()) {
            System.out.println("native: the native run lacks the fixed calls, so they are not compared with it");
        }
        good &= report("native" + suffix, Way.NATIVE, first, Way.SHM, first.hasCases() ? shm : shm.withoutCases(),
            software, accepted, isNative);
        good &= report("carriers" + suffix, Way.SHM, shm, Way.TCP, tcp, false, acceptedOfCarriers, true);
        return good;
    }

    /** Names the entries that no difference has matched. An open defect may be mended at any time. */
    private boolean reportStale(AcceptedDifferences accepted, boolean counts) {
        List<AcceptedDifferences.Entry> stale = accepted.stale();
        for (AcceptedDifferences.Entry entry : stale) {
            System.out.println("stale: " + entry.text());
            json.withArray("stale").add(entry.text());
        }
        return !counts || stale.stream().allMatch(AcceptedDifferences.Entry::isOpen);
    }

    /** Each function is called once before one is called again, so a run of that many calls has all of them. */
    private boolean callsAll(Trace trace) {
        List<String> missing = trace.calls().size() < trace.functions().size() ? List.of()
            : NeverCalled.ofResource().missing(trace);
        missing.forEach(name -> System.out.println("never called: " + name));
        return missing.isEmpty();
    }

    /** A native run that was not made here. All further runs make its calls. */
    private Trace recorded(Path file) {
        functions = List.of("--functions", file.toString());
        Trace trace = Trace.of(file).first(settings.calls);
        if (trace.description().isEmpty()) {
            throw new CheckException("the native run does not name its functions, so its calls are unknown: " + file,
                CheckException.REFUSED);
        }
        return trace;
    }

    private List<Path> unpack() {
        if (settings.seed != RECORDED_SEED || settings.calls > RECORDED_CALLS) {
            throw new CheckException("without an NVIDIA GPU only seed " + RECORDED_SEED + " and its first "
                + RECORDED_CALLS + " calls can be compared: recorded native runs have these");
        }
        List<Path> files = new ArrayList<>();
        for (String name : RECORDED) {
            Path file = workplace.folder().resolve(name.replace(".gz", ""));
            try (InputStream stream = new GZIPInputStream(Errors.class.getResourceAsStream(name))) {
                Files.copy(stream, file, StandardCopyOption.REPLACE_EXISTING);
            } catch (IOException e) {
                throw new CheckException("a recorded native run cannot be read: " + name, e);
            }
            files.add(file);
        }
        return files;
    }

    private Trace run(Way way, List<String> more) {
        progress.phase("%d random calls over %s", settings.calls, way.label());
        return start(way, more);
    }

    private Trace start(Way way, List<String> more) {
        List<String> arguments = new ArrayList<>(List.of("--seed", Long.toString(settings.seed), "--calls",
            Integer.toString(settings.calls), "--jobs",
            Integer.toString(Math.clamp(Runtime.getRuntime().availableProcessors() / 2, 2, 6))));
        arguments.addAll(functions);
        arguments.addAll(more);
        if (!more.contains(PICK)) {
            arguments.add("--cases");
        }
        Guests.Started program = guests.start(way, way == Way.NATIVE ? null : broker, PROGRAM, arguments);
        long end = System.nanoTime() + LIMIT.toNanos();
        try {
            while (!program.process().waitFor(STEP_MS, TimeUnit.MILLISECONDS) && System.nanoTime() < end) {
                progress.step("%s: %d bytes of results", way.label(), Files.size(program.out()));
            }
        } catch (InterruptedException | IOException e) {
            throw new CheckException(PROGRAM + ": " + e, e);
        }
        if (!children.await(program.process(), Duration.ZERO) || program.process().exitValue() != 0) {
            throw new CheckException(PROGRAM + " over " + way.label() + " fails or does not end; see "
                + program.err());
        }
        return Trace.of(program.out());
    }

    private boolean report(String name, Way firstWay, Trace first, Way secondWay, Trace second, boolean resultsOnly,
        AcceptedDifferences accepted, boolean canRun) {
        TraceComparison comparison = TraceComparison.of(first, second, resultsOnly);
        Map<String, List<TraceComparison.Difference>> groups = new LinkedHashMap<>();
        int acceptedCount = 0;
        int open = 0;
        for (TraceComparison.Difference difference : comparison.differences()) {
            Optional<AcceptedDifferences.Entry> entry = accepted.find(difference);
            if (entry.isPresent()) {
                acceptedCount += entry.get().isOpen() ? 0 : 1;
                open += entry.get().isOpen() ? 1 : 0;
            } else {
                groups.computeIfAbsent(difference.group(), group -> new ArrayList<>()).add(difference);
            }
        }
        int differences = groups.values().stream().mapToInt(List::size).sum();
        System.out.printf("%s: %s and %s: %d calls, %d compared, %d follow-ups, %d undefined; %d differences, "
            + "%d accepted, %d open%n", name, firstWay.label(), secondWay.label(), first.calls().size(),
            comparison.compared(), comparison.followUps(), comparison.undefined(), differences, acceptedCount, open);
        ObjectNode node = json.putObject(name).put("first", firstWay.label()).put("second", secondWay.label())
            .put("calls", first.calls().size()).put("compared", comparison.compared())
            .put("followUps", comparison.followUps()).put("undefined", comparison.undefined())
            .put("differences", differences).put("accepted", acceptedCount).put("open", open);
        if (differences > 0) { // a session that was refused or lost looks like many differences
            broker.warnings().forEach(System.out::println);
        }
        int shown = 0;
        for (List<TraceComparison.Difference> group : groups.values()) {
            TraceComparison.Difference one = group.getFirst();
            boolean isCase = one.call().index() >= Trace.FIRST_CASE; // its run is short, and always the same
            List<Integer> calls = canRun && !isCase && shown++ < SHRUNK_DIFFERENCES
                ? reproduction(one, first, firstWay, secondWay, resultsOnly)
                : Reproduction.makers(one.call().index(), first);
            System.out.printf("%4d  %s%n      --pick %s%n", group.size(), one.text(), Reproduction.pick(calls));
            node.withArray("groups").addObject().put("function", one.call().function())
                .put("arguments", one.call().arguments()).put("field", one.field().toString())
                .put("first", one.first()).put("second", one.second()).put("count", group.size())
                .put("pick", Reproduction.pick(calls));
        }
        return differences == 0;
    }

    private List<Integer> reproduction(TraceComparison.Difference difference, Trace trace, Way first, Way second,
        boolean resultsOnly) {
        int index = difference.call().index();
        progress.phase("searching few calls that show %s", difference.text());
        List<Integer> found = new Reproduction(calls -> {
            List<String> picked = List.of(PICK, Reproduction.pick(calls));
            return TraceComparison.of(start(first, picked), start(second, picked), resultsOnly).differences().stream()
                .anyMatch(other -> other.call().index() == index && other.field() == difference.field());
        }).of(index, trace);
        return found.isEmpty() ? Reproduction.makers(index, trace) : found;
    }

    private void write(Path file) {
        try {
            Files.writeString(file, json.toPrettyString() + "\n");
        } catch (IOException e) {
            throw new CheckException("the results cannot be written to " + file + ": " + e, e);
        }
    }
}
