package io.hawser.poolsimulator;

import io.hawser.broker.vgpu.Placement;
import io.hawser.broker.vgpu.PoolPlacement;
import io.hawser.poolsimulator.engine.Loss;
import io.hawser.poolsimulator.engine.Placing;
import io.hawser.poolsimulator.engine.PoolShape;
import io.hawser.poolsimulator.engine.PoolSimulation;
import io.hawser.poolsimulator.load.Arrival;
import io.hawser.poolsimulator.load.ArrivalFile;
import io.hawser.poolsimulator.load.Arrivals;
import io.hawser.poolsimulator.load.GeneratedArrivals;
import io.hawser.poolsimulator.load.Mix;
import io.hawser.simulator.engine.Durations;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code simulate pool}. */
@Command(name = "pool", sortOptions = false, mixinStandardHelpOptions = true,
    description = "Runs the broker's placement over a pool of brokers in simulated time, and counts what is reserved"
        + " after each act.",
    footer = {"", "A file of arrivals is CSV: the line " + ArrivalFile.HEAD + ", then an arrival a line, the earliest"
        + " first.", "", "Exit codes: 0 done, 1 failed or more was reserved than a GPU has, 2 wrong command line."})
final class PoolCommand implements Callable<Integer> {
    private static final int MAX_BROKERS = 10_000;
    private static final int MAX_GPUS = 64;
    private static final int MAX_VGPUS = 1_000_000;
    private static final int MAX_SECONDS = 1_000_000;
    private static final long MIB = 1 << 20;
    private static final double NS_A_MS = 1e6;
    private static final String GENERATED = "generated";

    @Option(names = "--brokers", paramLabel = "N", defaultValue = "1000", description = "Brokers (${DEFAULT-VALUE}).")
    private int brokers;

    @Option(names = "--gpus", paramLabel = "N", defaultValue = "8", description = "GPUs of each broker, 1 to 64"
        + " (${DEFAULT-VALUE}).")
    private int gpus;

    @Option(names = "--gpu-memory", paramLabel = "SIZE", defaultValue = "80g", description = "Memory of a GPU"
        + " (${DEFAULT-VALUE}).")
    private String gpuMemory;

    @Option(names = "--context", paramLabel = "SIZE", defaultValue = "300m", description = "Memory of a worker's"
        + " context (${DEFAULT-VALUE}).")
    private String context;

    @Option(names = "--placement", paramLabel = "NAME", defaultValue = "least-loaded", description = "Policy:"
        + " least-loaded, packed or spread (${DEFAULT-VALUE}).")
    private String placement;

    @Option(names = "--arrivals", paramLabel = "FILE", defaultValue = GENERATED, description = "Recorded arrivals, or"
        + " ${DEFAULT-VALUE}, which the next options describe.")
    private String arrivals;

    @Option(names = "--vgpus", paramLabel = "N", defaultValue = "100000", description = "vGPUs at a time"
        + " (${DEFAULT-VALUE}).")
    private int vgpus;

    @Option(names = "--rate", paramLabel = "N", defaultValue = "500", description = "Arrivals a second until that many"
        + " have come (${DEFAULT-VALUE}); later ones replace the vGPUs that end.")
    private double rate;

    @Option(names = "--life", paramLabel = "TIME", defaultValue = "1000s", description = "Mean life of a vGPU"
        + " (${DEFAULT-VALUE}).")
    private String life;

    @Option(names = "--sizes", paramLabel = "SIZE:WEIGHT,...", defaultValue = "1g:8,5g:7,10g:4,20g:1",
        description = "Memory of the vGPUs (${DEFAULT-VALUE}).")
    private String sizes;

    @Option(names = "--shares", paramLabel = "SHARE:WEIGHT,...", defaultValue = "5:8,10:7,25:4,50:1",
        description = "Compute shares of the vGPUs (${DEFAULT-VALUE}).")
    private String shares;

    @Option(names = "--used", paramLabel = "PART", defaultValue = "0.5", description = "Part of the vGPUs that are in"
        + " use (${DEFAULT-VALUE}).")
    private double used;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1", description = "Seed of all random values"
        + " (${DEFAULT-VALUE}).")
    private long seed;

    @Option(names = "--seconds", paramLabel = "S", defaultValue = "600", description = "Simulated time"
        + " (${DEFAULT-VALUE}).")
    private int seconds;

    @Option(names = "--lose", paramLabel = "PART", defaultValue = "0", description = "Part of the brokers that lose the"
        + " database (${DEFAULT-VALUE}).")
    private double lose;

    @Option(names = "--at", paramLabel = "TIME", defaultValue = "400s", description = "Time of the loss"
        + " (${DEFAULT-VALUE}).")
    private String at;

    @Option(names = "--back", paramLabel = "TIME", defaultValue = "500s", description = "Time of their return"
        + " (${DEFAULT-VALUE}).")
    private String back;

    @Option(names = "--fragment", paramLabel = "SIZE", defaultValue = "20g", description = "Free memory on a GPU"
        + " without room for a vGPU of this size counts as fragmented (${DEFAULT-VALUE}).")
    private String fragment;

    @Option(names = "--record", paramLabel = "FILE", description = "Writes the arrivals, for --arrivals.")
    private Path record;

    @Option(names = "--plot", paramLabel = "FILE", description = "Writes plots as SVG.")
    private Path plot;

    @Option(names = "--title", paramLabel = "TEXT", description = "Title of the plots.")
    private String title;

    @Spec
    private CommandSpec spec;
    private Placing placing = PoolPlacement::anywhere;

    /** Places by other rules, in tests of the count. */
    void placeBy(Placing other) {
        placing = other;
    }

    @Override
    public Integer call() throws IOException {
        PoolSimulation.Plan plan;
        Arrivals source;
        try {
            check();
            plan = plan();
            source = source();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage());
        }
        PoolSimulation simulation;
        if (record == null) {
            simulation = new PoolSimulation(plan, placing, arrival -> {});
            simulation.run(source);
        } else {
            try (PrintWriter file = new PrintWriter(Files.newBufferedWriter(record))) {
                file.print(ArrivalFile.HEAD + "\n");
                Consumer<Arrival> recorder = arrival -> file.print(ArrivalFile.line(arrival) + "\n");
                simulation = new PoolSimulation(plan, placing, recorder);
                simulation.run(source);
                if (file.checkError()) {
                    throw new IOException("the arrivals could not be written: " + record);
                }
            }
        }
        PoolReport report = new PoolReport(simulation.tally());
        PrintWriter out = spec.commandLine().getOut();
        out.print(report.text(simulation.violations()));
        if (plot != null) {
            Files.writeString(plot, report.plot(title == null ? brokers + " brokers, " + brokers * gpus + " GPUs, "
                + placement : title, fragment));
        }
        out.flush();
        if (simulation.violations() > 0) {
            spec.commandLine().getErr().println("simulate: " + simulation.firstViolation());
            spec.commandLine().getErr().flush();
            return 1;
        }
        return 0;
    }

    private void check() {
        if (brokers < 1 || brokers > MAX_BROKERS || gpus < 1 || gpus > MAX_GPUS || vgpus < 1 || vgpus > MAX_VGPUS
            || seconds < 1 || seconds > MAX_SECONDS) {
            throw new IllegalArgumentException("there must be 1 to " + MAX_BROKERS + " brokers, 1 to " + MAX_GPUS
                + " GPUs of each, 1 to " + MAX_VGPUS + " vGPUs and 1 to " + MAX_SECONDS + " seconds");
        }
        if (!(rate > 0) || !(used >= 0 && used <= 1) || !(lose >= 0 && lose < 1)) {
            throw new IllegalArgumentException("the rate must be over 0, --used 0 to 1 and --lose at least 0 and below"
                + " 1");
        }
    }

    private PoolSimulation.Plan plan() {
        Loss loss = lose == 0 ? Loss.NONE : new Loss(lose, ms(at), ms(back));
        if (lose > 0 && loss.backMs() <= loss.atMs()) {
            throw new IllegalArgumentException("the return must be after the loss: --at " + at + " --back " + back);
        }
        return new PoolSimulation.Plan(new PoolShape(brokers, gpus, bytes(gpuMemory), bytes(context)),
            Placement.of(placement, 1), loss, 1000L * seconds, bytes(fragment), seed);
    }

    private Arrivals source() throws IOException {
        if (!arrivals.equals(GENERATED)) {
            return ArrivalFile.read(Path.of(arrivals));
        }
        Mix shareMix = Mix.numbers(shares);
        if (shareMix.least() < 1 || shareMix.most() > 100) {
            throw new IllegalArgumentException("a share must be 1 to 100: " + shares);
        }
        return new GeneratedArrivals(new GeneratedArrivals.Shape(vgpus, rate, ms(life), Mix.sizes(sizes), shareMix,
            used), seed);
    }

    private static long ms(String text) {
        long ms = Math.round(Durations.parse(text) / NS_A_MS);
        if (ms < 1) {
            throw new IllegalArgumentException("a time must be at least 1ms: " + text);
        }
        return ms;
    }

    private static long bytes(String text) {
        return Mix.sizes(text).least() * MIB;
    }
}
