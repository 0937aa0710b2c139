package io.hawser.check;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Measures programs that exchange their places on a GPU. One thread. */
final class Swaps {
    private static final String PROGRAM = "drv_idle_rounds";
    private static final String BROKER = "swaps";
    private static final Pattern PASS = Pattern.compile("^PASS.* in ([0-9.]+) s$", Pattern.MULTILINE);
    private static final Pattern KEEPER = Pattern.compile("keeps the memory of swapped sessions.* pid=([0-9]+)");
    private static final Duration KEEPER_LIMIT = Duration.ofSeconds(60);
    private static final Duration STEADY = Duration.ofSeconds(3);
    private static final long STEADY_KIB = 8192; // a keeper that allocates takes more between two looks
    private static final int LOOK_EVERY_MS = 200;
    private static final int NOTEBOOK_BLOCKS = 8;
    private static final int NOTEBOOK_ROUNDS = 3;
    private static final int MORE_SESSIONS = 8; // a vGPU's next session may begin before the last one has ended
    private static final Target SERIES_GOAL = new Target(Target.Kind.AT_LEAST, 0.9);
    private static final Target NOTEBOOKS_GOAL = new Target(Target.Kind.AT_MOST, 1);

    private final SwapsOptions options;
    private final Installation installation;
    private final Children children;
    private final Workplace workplace;
    private final Progress progress;
    private final NativeCuda cuda = NativeCuda.here();
    private final Guests guests;
    private final HeldPrograms held;
    private final List<String> tenants;
    private final List<String> notebooks;
    private final List<SwapRun> runs = new ArrayList<>();
    private BrokerChild broker;
    private int logMark; // begin of the last run in the broker's log

    Swaps(SwapsOptions options, Installation installation, Children children, Workplace workplace,
        Progress progress) {
        this.options = options;
        this.installation = installation;
        this.children = children;
        this.workplace = workplace;
        this.progress = progress;
        guests = new Guests(installation, cuda, children, workplace.folder());
        held = new HeldPrograms(children, Duration.ofSeconds(options.limitS()));
        tenants = IntStream.rangeClosed(1, options.tenants()).mapToObj(i -> "t" + i).toList();
        notebooks = IntStream.rangeClosed(1, options.notebooks()).mapToObj(i -> "n" + i).toList();
    }

    /** Runs the sets. @throws CheckException if a program fails. */
    SwapsReport run() {
        Instant began = Instant.now();
        OptionalDouble nativeSeconds = options.isNvidia() ? OptionalDouble.of(nativeSeconds()) : OptionalDouble.empty();
        SwapsReport.Keeper keeper;
        startBroker();
        try {
            keeper = awaitKeeper();
            if (options.sets().contains(SwapsOptions.EXCHANGE)) {
                exchange();
            }
            if (options.sets().contains(SwapsOptions.SERIES)) {
                series();
            }
            if (options.sets().contains(SwapsOptions.NOTEBOOKS)) {
                besideNotebooks();
            }
        } finally {
            broker.close();
        }
        return new SwapsReport(began, Machine.here(), options, nativeSeconds, keeper, runs, broker.defects());
    }

    private void startBroker() {
        List<String> vgpus = Stream.concat(tenants.stream(), notebooks.stream()).toList();
        if (options.carrier() == Way.SHM) {
            workplace.addRegions(vgpus);
        }
        List<String> settings = new ArrayList<>();
        for (String vgpu : vgpus) {
            String memory = notebooks.contains(vgpu) ? options.load().notebookMemory() : options.load().memory();
            settings.addAll(List.of("-Dhawser.vgpus." + vgpu + ".memory-bytes=" + memory,
                "-Dhawser.vgpus." + vgpu + ".swappable=true", "-Dhawser.vgpus." + vgpu + ".gpus=0"));
        }
        settings.addAll(List.of("-Dhawser.overcommit=16", // the highest
            "-Dhawser.sessions.max=" + (vgpus.size() + MORE_SESSIONS),
            "-Dhawser.swap.memory=" + options.load().swapMemory(),
            "-Dhawser.swap.ahead=" + options.load().swapMemory(), "-Dhawser.swap.turn=" + options.load().turn(),
            // Workers report calls each 0.5 s, so a shorter time would make busy vGPUs leave before their turns end.
            "-Dhawser.swap.idle=1s", "-Dquarkus.log.category.\"io.hawser.broker.swap\".level=DEBUG"));
        options.settings().forEach(setting -> settings.add("-D" + setting));
        progress.phase("starting a broker");
        // No pool: the start of further workers would take processors and the GPU from the measured ones.
        broker = BrokerChild.start(installation, children, workplace, cuda.brokerEnvironment(), options.backend(),
            BROKER, 0, settings);
    }

    /** Waits until the keeper's memory has not grown for 3 s. The first swaps would wait for the rest. */
    private SwapsReport.Keeper awaitKeeper() {
        broker.await("the start of a keeper", KEEPER_LIMIT, () -> keeper(broker.logText()).isPresent());
        long pid = keeper(broker.logText()).orElseThrow();
        long began = System.nanoTime();
        long grew = began;
        long kib = 0;
        while (System.nanoTime() - grew < STEADY.toNanos()) {
            long now = ProcessMemory.residentKib(pid);
            if (now > kib + STEADY_KIB) {
                kib = now;
                grew = System.nanoTime();
            }
            if (System.nanoTime() - began > TimeUnit.SECONDS.toNanos(options.limitS())) {
                throw new CheckException("the keeper still allocates after " + options.limitS() + " s: mib="
                    + kib / 1024);
            }
            progress.step("the keeper has %d MiB", now / 1024);
            pause();
        }
        SwapsReport.Keeper keeper = new SwapsReport.Keeper(kib / 1024, (grew - began) * 1e-9);
        progress.phase("the keeper has %d MiB after %.0f s", keeper.mib(), keeper.seconds());
        return keeper;
    }

    /** The process that keeps the memory of swapped sessions; empty if the log does not name it yet. */
    static OptionalLong keeper(String log) {
        Matcher line = KEEPER.matcher(log);
        return line.find() ? OptionalLong.of(Long.parseLong(line.group(1))) : OptionalLong.empty();
    }

    /** The time in the output of a program that passed. @throws CheckException if it did not pass. */
    static double seconds(String output) {
        Matcher line = PASS.matcher(output);
        if (!line.find()) {
            throw new CheckException(PROGRAM + " must print PASS and its time:\n" + output);
        }
        return Double.parseDouble(line.group(1));
    }

    private double nativeSeconds() {
        Guests.Started program = start(Way.NATIVE, null, tenantArguments());
        held.run(program);
        double seconds = seconds(program.outText());
        progress.phase("natively: %.3f s", seconds);
        return seconds;
    }

    private Guests.Started start(Way way, String vgpu, List<String> arguments) {
        return guests.start(way, broker, PROGRAM, arguments, vgpu);
    }

    private List<String> tenantArguments() {
        return arguments(options.load().mib(), options.load().blocks(), options.load().rounds());
    }

    private static List<String> arguments(int mib, int blocks, int rounds) {
        return List.of("--wait", "1", "--mib", Integer.toString(mib), "--blocks", Integer.toString(blocks),
            "--rounds", Integer.toString(rounds));
    }

    /** Runs tenants at the same time. Returns their longest time in seconds. */
    private double together(String set, List<String> vgpus) {
        progress.step("%s: %s", set, String.join(", ", vgpus));
        List<Guests.Started> programs = held.together(vgpus.size(),
            i -> start(options.carrier(), vgpus.get(i), tenantArguments()),
            () -> logMark = broker.logText().lastIndexOf('\n') + 1);
        double longest = programs.stream().mapToDouble(program -> seconds(program.outText())).max().orElseThrow();
        progress.phase("%s: %s: %.3f s", set, String.join(", ", vgpus), longest);
        return longest;
    }

    private void add(String set, Map<String, Double> seconds, String figure, double value, Target target,
        List<Move> moves) {
        runs.add(new SwapRun(set, seconds, figure, value, target, Moves.of(moves, true), Moves.of(moves, false)));
    }

    /** The moves since the last programs were ready. */
    private List<Move> moves() {
        return Move.of(broker.logText().substring(logMark));
    }

    private void exchange() {
        double alone = together(SwapsOptions.EXCHANGE, tenants.subList(0, 1));
        double both = together(SwapsOptions.EXCHANGE, tenants.subList(0, 2));
        Map<String, Double> seconds = new LinkedHashMap<>();
        seconds.put("one tenant alone", alone);
        seconds.put("two at once", both);
        add(SwapsOptions.EXCHANGE, seconds, "2 x alone / both", Ratios.exchange(alone, both), Target.NONE, moves());
    }

    private void series() {
        double series = 0;
        for (String tenant : tenants) {
            series += together(SwapsOptions.SERIES, List.of(tenant));
        }
        double atOnce = together(SwapsOptions.SERIES, tenants);
        Map<String, Double> seconds = new LinkedHashMap<>();
        seconds.put(tenants.size() + " tenants one after the other", series);
        seconds.put("at once", atOnce);
        add(SwapsOptions.SERIES, seconds, "series / at once", series / atOnce, SERIES_GOAL, moves());
    }

    private void besideNotebooks() {
        double before = together(SwapsOptions.NOTEBOOKS, tenants.subList(0, 1));
        List<String> arguments = arguments(options.load().notebookMib(), NOTEBOOK_BLOCKS, NOTEBOOK_ROUNDS);
        List<Guests.Started> idle =
            notebooks.stream().map(vgpu -> start(options.carrier(), vgpu, arguments)).toList();
        held.awaitReady(idle);
        progress.phase("%d notebooks are idle", idle.size());
        double beside = together(SwapsOptions.NOTEBOOKS, tenants.subList(0, 1));
        List<Move> moves = moves();
        held.release(idle);
        held.awaitEnd(idle);
        idle.forEach(notebook -> seconds(notebook.outText()));
        double after = together(SwapsOptions.NOTEBOOKS, tenants.subList(0, 1));
        Map<String, Double> seconds = new LinkedHashMap<>();
        seconds.put("one tenant alone, before", before);
        seconds.put("beside " + idle.size() + " notebooks", beside);
        seconds.put("alone, after", after);
        add(SwapsOptions.NOTEBOOKS, seconds, "cost, %", Ratios.costPercent(before, after, beside), NOTEBOOKS_GOAL,
            moves);
    }

    private static void pause() {
        try {
            Thread.sleep(LOOK_EVERY_MS); // /proc has no event
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CheckException("interrupted", e);
        }
    }
}
