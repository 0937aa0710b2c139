package io.hawser.simulator;

import io.hawser.simulator.engine.Costs;
import io.hawser.simulator.engine.Durations;
import io.hawser.simulator.engine.Simulation;
import io.hawser.simulator.load.GeneratedRun;
import io.hawser.simulator.load.Load;
import io.hawser.simulator.load.Placement;
import io.hawser.simulator.report.Results;
import io.hawser.simulator.report.ShareSeries;
import io.hawser.simulator.report.TenantResult;
import io.hawser.simulator.report.TextTable;
import io.hawser.turns.RecordingEncoder;
import io.hawser.turns.TurnRecorder;
import io.hawser.turns.TurnRules;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code simulate run}. */
@Command(name = "run", sortOptions = false, mixinStandardHelpOptions = true,
    description = "Simulates generated loads and prints what each got.",
    footer = {"", "A load is [COUNTx]KIND[:KEY=VALUE,...]. Kinds, with their defaults:",
        "  flight  always has kernels in flight (kernel=50us,window=8)",
        "  wait    waits for each kernel (kernel=200us,pause=20us)",
        "  burst   rounds of kernels, then a pause (kernel=100us,kernels=100,window=8,pause=10ms)",
        "  long    a flood of long kernels (kernel=50ms,window=1)",
        "  idle    has a session and launches nothing",
        "Further keys: weight=100, gpus=1 (used at once), jitter=0.1 (part by which pauses and kernels vary), from=0,"
            + " until.",
        "", "@FILE reads arguments from a file, one a line."})
final class RunCommand implements Callable<Integer> {
    private static final int MAX_GPUS = 64;
    private static final int MAX_SECONDS = 3600;
    private static final Costs H200 = new Costs(100_000, 50_000, 0);

    @Parameters(arity = "1..*", paramLabel = "LOAD", description = "Tenants, up to 1000 in all.")
    private List<String> texts;

    @Option(names = "--gpus", paramLabel = "N", defaultValue = "1", description = "GPUs, 1 to 64"
        + " (${DEFAULT-VALUE}).")
    private int gpus;

    @Option(names = "--seconds", paramLabel = "S", defaultValue = "10", description = "Simulated time, 1 to 3600"
        + " (${DEFAULT-VALUE}).")
    private int seconds;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1", description = "Seed of all random values"
        + " (${DEFAULT-VALUE}).")
    private long seed;

    @Option(names = "--placement", paramLabel = "NAME", defaultValue = "round-robin", description = "How tenants get"
        + " GPUs: round-robin or least-loaded (${DEFAULT-VALUE}).")
    private String placement;

    @Option(names = "--leave-equal", description = "Leaves vGPUs of equal weight to the driver, as auto does on NVIDIA"
        + " GPUs.")
    private boolean leavesEqual;

    @Option(names = "--record", paramLabel = "FILE", description = "Writes the scheduler's decisions, for replay.")
    private Path record;

    @Option(names = "--vary", paramLabel = "RULE=V,...", description = "Runs once for each value of a rule, such as"
        + " quantum=2ms,4ms, and prints a row for each.")
    private String vary;

    @Mixin
    private RuleOptions ruleOptions = new RuleOptions();
    @Mixin
    private CostOptions costOptions = new CostOptions();
    @Mixin
    private OutputOptions output = new OutputOptions();
    @Spec
    private CommandSpec spec;
    private ShareSeries series;

    @Override
    public Integer call() throws IOException {
        List<Load> loads;
        TurnRules rules;
        Costs costs;
        try {
            loads = Load.parse(texts);
            rules = ruleOptions.over(Simulate.DEFAULT_RULES);
            costs = costOptions.over(H200);
            check(loads);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage());
        }
        if (vary != null) {
            spec.commandLine().getOut().print(vary(rules, costs, loads));
            spec.commandLine().getOut().flush();
            return 0;
        }
        Results results = run(rules, costs, loads);
        spec.commandLine().getOut().print(results.table(output.isEach()));
        spec.commandLine().getOut().println(results.summary());
        output.plot(series, String.join(" ", texts));
        return 0;
    }

    private void check(List<Load> loads) {
        if (gpus < 1 || gpus > MAX_GPUS || seconds < 1 || seconds > MAX_SECONDS) {
            throw new IllegalArgumentException("there must be 1 to " + MAX_GPUS + " GPUs and 1 to " + MAX_SECONDS
                + " seconds: gpus=" + gpus + " seconds=" + seconds);
        }
        placement();
        for (Load load : loads) {
            if (load.gpus() > gpus) {
                throw new IllegalArgumentException("a load must use at most all GPUs: " + load.label());
            }
        }
        if (vary != null && (record != null || output.hasPlot() || output.isEach())) {
            throw new IllegalArgumentException("--vary goes without --record, --plot and --each");
        }
    }

    private Placement placement() {
        return switch (placement) {
            case "round-robin" -> Placement.roundRobin();
            case "least-loaded" -> Placement.leastLoaded();
            default -> throw new IllegalArgumentException("a placement must be round-robin or least-loaded: "
                + placement);
        };
    }

    private String vary(TurnRules rules, Costs costs, List<Load> loads) throws IOException {
        String[] sides = vary.split("=", -1);
        TextTable table = new TextTable(sides[0], "GPU used", "got of asked", "wait p50", "p99", "max", "turns/s",
            "lost");
        if (sides.length != 2) {
            throw new ParameterException(spec.commandLine(), "--vary must be RULE=VALUE,...: " + vary);
        }
        for (String value : sides[1].split(",", -1)) {
            TurnRules other;
            try {
                other = RuleOptions.with(rules, sides[0], value);
            } catch (IllegalArgumentException e) {
                throw new ParameterException(spec.commandLine(), "--vary: " + e.getMessage());
            }
            Results results = run(other, costs, loads);
            table.row(value, Results.percent(results.usedPart()), Results.range(results.ratios()),
                Durations.format(results.waits().getValueAtPercentile(50)),
                Durations.format(results.waits().getValueAtPercentile(99)), Durations.format(results.longestWaitNs()),
                String.format(Locale.ROOT, "%.0f", (double) results.turns() / seconds),
                String.valueOf(results.lostTurns()));
        }
        return table.toString();
    }

    private Results run(TurnRules rules, Costs costs, List<Load> loads) throws IOException {
        if (record == null) {
            return run(rules, costs, loads, null);
        }
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(record))) {
            return run(rules, costs, loads, new RecordingEncoder((line, length) -> {
                try {
                    out.write(line, 0, length);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }, rules, 0));
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
    }

    private Results run(TurnRules rules, Costs costs, List<Load> loads, TurnRecorder recorder) {
        Simulation simulation = new Simulation(rules, costs, gpus, recorder);
        if (leavesEqual) {
            simulation.leaveEqual();
        }
        GeneratedRun run = new GeneratedRun(simulation, gpus, placement(), loads, seed);
        double lengthNs = seconds * 1e9;
        Sampling sampling = new Sampling(simulation, lengthNs);
        sampling.run(() -> run.placed().stream().map(placed -> new Sampling.Sampled(placed.tenant(),
            loads.get(placed.load()).label())).toList());
        series = sampling.series();
        List<TenantResult> results = new ArrayList<>();
        run.placed().forEach(placed -> results.add(Sampling.result(placed.tenant(),
            loads.get(placed.load()).label())));
        if (results.isEmpty()) {
            throw new ParameterException(spec.commandLine(), "a tenant must join before the simulation ends");
        }
        return new Results(results, lengthNs, gpus);
    }
}
