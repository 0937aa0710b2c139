package io.hawser.check;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/** Measures sets of programs that share one GPU, natively and over the carriers. One thread. */
final class Shares {
    private static final String PROGRAM = "tenant";
    private static final int VGPUS = 16;
    private static final int SHARE_PER_WEIGHT = 10;
    private static final int MEASURED_BODIES = 4096;
    // Two for each multiprocessor of an H200; the software GPU runs a block after the other.
    private static final int BLOCKS = 264;
    private static final int SOFTWARE_BLOCKS = 2;
    private static final Duration CALIBRATION_LIMIT = Duration.ofSeconds(60);
    private static final int LIMIT_S = 60; // beside warm-up and measurement

    private final SharesOptions options;
    private final Installation installation;
    private final Children children;
    private final Workplace workplace;
    private final Progress progress;
    private final Guests guests;
    private final HeldPrograms held;
    private final Map<String, String> environment;
    private final boolean hasGpu;
    private final int blocks;
    private final List<SharesRun> runs = new ArrayList<>();
    private final List<String> defects = new ArrayList<>();
    private double kernelMs; // the time of a kernel of MEASURED_BODIES; 0 before the calibration

    Shares(SharesOptions options, Installation installation, Children children, Workplace workplace,
        Progress progress) {
        this.options = options;
        this.installation = installation;
        this.children = children;
        this.workplace = workplace;
        this.progress = progress;
        NativeCuda cuda = NativeCuda.here();
        environment = cuda.brokerEnvironment();
        guests = new Guests(installation, cuda, children, workplace.folder());
        held = new HeldPrograms(children, Duration.ofSeconds(options.warmUpS() + options.seconds() + LIMIT_S));
        hasGpu = options.canRunNatively(cuda);
        blocks = hasGpu ? BLOCKS : SOFTWARE_BLOCKS;
    }

    /** Measures all sets in all ways. @throws CheckException if a program fails. */
    SharesReport run() {
        Instant began = Instant.now();
        Set<Way> ways = options.ways().orElse(hasGpu ? EnumSet.of(Way.NATIVE, Way.SHM) : EnumSet.of(Way.SHM));
        if (ways.contains(Way.SHM)) {
            workplace.addRegions(vgpus());
        }
        if (hasGpu) {
            calibrate(Way.NATIVE, null);
        }
        if (ways.contains(Way.NATIVE)) {
            sets(Predicate.not(ShareSet::isWeighted)).forEach(set -> measure(set, Way.NATIVE, null));
        }
        for (Way carrier : List.of(Way.SHM, Way.TCP)) {
            if (ways.contains(carrier)) {
                measure(sets(Predicate.not(ShareSet::isWeighted)), carrier, "shares-" + carrier.label());
                measure(sets(ShareSet::isWeighted), carrier, "weights-" + carrier.label());
            }
        }
        return new SharesReport(began, Machine.here(), options, bodies(options.kernelUs() / 1e3), runs, defects);
    }

    private List<ShareSet> sets(Predicate<ShareSet> wanted) {
        return options.sets().stream().filter(wanted).toList();
    }

    private static List<String> vgpus() {
        return IntStream.range(0, VGPUS).mapToObj(Shares::vgpu).toList();
    }

    private static String vgpu(int number) {
        return "t" + (number + 1);
    }

    /** Measures sets whose vGPUs have the same compute shares, through a broker of their own. */
    private void measure(List<ShareSet> sets, Way carrier, String name) {
        if (sets.isEmpty()) {
            return;
        }
        progress.phase("starting a broker for %s", carrier.label());
        // No pool: the start of further workers would take processors and the GPU from the measured ones.
        BrokerChild broker = BrokerChild.start(installation, children, workplace, environment, options.backend(), name,
            0, settings(sets.getFirst()));
        try {
            if (kernelMs == 0) {
                calibrate(carrier, broker);
            }
            sets.forEach(set -> measure(set, carrier, broker));
        } finally {
            broker.close();
        }
        defects.addAll(broker.defects());
    }

    private List<String> settings(ShareSet set) {
        Map<String, Integer> shares = new HashMap<>();
        vgpus().forEach(vgpu -> shares.put(vgpu, 100));
        if (set.isWeighted()) {
            for (int i = 0; i < set.tenants().size(); i++) {
                shares.put(vgpu(i), set.tenants().get(i).weight() * SHARE_PER_WEIGHT);
            }
        }
        List<String> settings = new ArrayList<>();
        shares.forEach((vgpu, share) -> settings.add("-Dhawser.vgpus." + vgpu + ".compute-share=" + share));
        options.settings().forEach(setting -> settings.add("-D" + setting));
        return settings;
    }

    private void measure(ShareSet set, Way way, BrokerChild broker) {
        progress.step("%s over %s", set.name(), way.label());
        if (way != Way.NATIVE) {
            broker.awaitNoSession(); // the last set's workers would take processors
        }
        List<ShareSet.Tenant> tenants = set.tenants();
        List<Guests.Started> programs = held.together(tenants.size(),
            i -> guests.start(way, broker, PROGRAM, arguments(tenants.get(i).load()), vgpu(i)), () -> {});
        List<TenantFigures> figures = IntStream.range(0, tenants.size())
            .mapToObj(i -> TenantFigures.of(tenants.get(i).weight(), programs.get(i))).toList();
        SharesRun run = new SharesRun(set, way, figures);
        runs.add(run);
        progress.phase("%s over %s: %d kernels, most over least %.3f", set.name(), way.label(), run.kernels(),
            run.mostOverLeast());
    }

    private List<String> arguments(ShareSet.Load load) {
        boolean isGreedy = load == ShareSet.Load.GREEDY;
        double ms = isGreedy ? options.greedyMs() : options.kernelUs() / 1e3;
        return List.of("--blocks", Integer.toString(blocks), "--bodies",
            Integer.toString(load.hasKernels() ? bodies(ms) : 0), "--copy-kib", Integer.toString(load.copyKib()),
            "--depth", Integer.toString(load.depth()), "--seconds", Integer.toString(options.seconds()),
            "--warm-up", Integer.toString(isGreedy ? 0 : options.warmUpS() * 1000));
    }

    private int bodies(double ms) {
        return Ratios.bodies(MEASURED_BODIES, kernelMs, ms);
    }

    /** Measures a kernel, so that all ways run kernels of the same size. */
    private void calibrate(Way way, BrokerChild broker) {
        Guests.Started program = guests.start(way, broker, PROGRAM, List.of("--blocks", Integer.toString(blocks),
            "--bodies", Integer.toString(MEASURED_BODIES), "--seconds", "0"), vgpu(0));
        new HeldPrograms(children, CALIBRATION_LIMIT).run(program);
        kernelMs = TenantFigures.kernelMs(program.lines().getFirst());
        progress.phase("a kernel of %d bodies takes %.4f ms", MEASURED_BODIES, kernelMs);
    }
}
