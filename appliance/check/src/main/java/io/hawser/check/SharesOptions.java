package io.hawser.check;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The command line of {@code hawser-check --shares}.
 *
 * @param help only print the usage.
 * @param seconds length of a measurement.
 * @param warmUpS seconds of the same work before it.
 * @param kernelUs length of a kernel.
 * @param greedyMs length of a greedy program's kernel.
 * @param ways empty for shared memory, and natively where there is a driver.
 * @param sets in the order of {@link ShareSet#all()}.
 * @param backend auto, software or nvidia.
 * @param settings of the brokers, {@code name=value} each.
 * @param json file for the results as JSON.
 * @param markdown print the tables as Markdown.
 * @param keep whether logs and outputs stay.
 */
record SharesOptions(boolean help, int seconds, int warmUpS, int kernelUs, int greedyMs, Optional<Set<Way>> ways,
    List<ShareSet> sets, String backend, List<String> settings, Optional<Path> json, boolean markdown, boolean keep) {
    private static final int MOST_S = 3600;
    private static final int MOST_US = 10_000_000;
    private static final int MOST_MS = 60_000;

    static final String USAGE = """
        usage: hawser-check --shares [--seconds N] [--warm-up N] [--kernel-us N] [--greedy-ms N] [--ways native,shm,tcp]
                                     [--sets NAME,...] [--backend auto|software|nvidia] [--setting NAME=VALUE]
                                     [--json FILE] [--markdown] [--keep]

        Measures how vGPUs share one GPU: with equal shares, by weight, and beside a greedy one. Starts a broker of its
        own with sixteen vGPUs and no pool of workers. Programs launch kernels of one length for some seconds, and count
        the kernels that end in that time. Each set has a table: the kernels of each program, and the median, the 99th
        percentile and the longest time from a launch to its end. The last table compares with the goals. A missed goal
        is no failure.

          --seconds    length of a measurement (3)
          --warm-up    seconds of the same work before it; a worker compiles its code in the first seconds (10)
          --kernel-us  length of a kernel, in microseconds (200)
          --greedy-ms  length of a greedy program's kernel, in ms (1500)
          --ways       native, shm, tcp (shm, and native where there is a driver)
          --sets       equal2,equal4,equal8,equal16,loops8,tail8,weights,weightloops,copies3,weightcopies,
                       weightmixed,greedy,mixed (all). In loops8 and weightloops each program waits for each
                       kernel, in tail8 the first one does; the others have 32 kernels in flight. In copies3 and
                       weightcopies programs copy 8 MiB to the device, in weightmixed they copy 4 MiB and launch
                       a kernel in turn. The shares of sets with "weight" are as 1 : 2 : 4
          --backend    the GPU that the workers open (auto)
          --setting    a setting of the brokers, such as hawser.turns.mode=on; may be repeated
          --json       writes all results to FILE as well
          --markdown   prints the tables as Markdown
          --keep       keeps logs and outputs

        Exit code: 0 after a measurement, 1 if a program failed or a broker's log reports a defect, 2 for a wrong
        command line.
        """;

    /** Parses the arguments. @throws UsageException with the error in one line. */
    static SharesOptions parse(String... arguments) throws UsageException {
        boolean help = false;
        int seconds = 3;
        int warmUpS = 10;
        int kernelUs = 200;
        int greedyMs = 1500;
        Optional<Set<Way>> ways = Optional.empty();
        List<ShareSet> sets = ShareSet.all();
        String backend = "auto";
        List<String> settings = new ArrayList<>();
        Optional<Path> json = Optional.empty();
        boolean markdown = false;
        boolean keep = false;
        Arguments rest = new Arguments(arguments);
        while (rest.hasNext()) {
            String option = rest.next();
            switch (option) {
                case "-h", "--help" -> help = true;
                case "--seconds" -> seconds = rest.number(1, MOST_S);
                case "--warm-up" -> warmUpS = rest.number(0, MOST_S);
                case "--kernel-us" -> kernelUs = rest.number(1, MOST_US);
                case "--greedy-ms" -> greedyMs = rest.number(1, MOST_MS);
                case "--ways" -> ways = Optional.of(rest.ways(Way.NATIVE, Way.SHM, Way.TCP));
                case "--sets" -> {
                    List<String> names = rest.someOf(ShareSet.all().stream().map(ShareSet::name).toList());
                    sets = ShareSet.all().stream().filter(set -> names.contains(set.name())).toList();
                }
                case "--backend" -> backend = rest.oneOf("auto", "software", "nvidia");
                case "--setting" -> settings.add(rest.setting());
                case "--json" -> json = Optional.of(Path.of(rest.value()));
                case "--markdown" -> markdown = true;
                case "--keep" -> keep = true;
                default -> throw new UsageException("unknown option: " + option);
            }
        }
        SharesOptions options = new SharesOptions(help, seconds, warmUpS, kernelUs, greedyMs, ways, sets, backend,
            List.copyOf(settings), json, markdown, keep);
        if (ways.isPresent() && ways.get().contains(Way.NATIVE) && !options.canRunNatively(NativeCuda.here())) {
            throw new UsageException("--ways native needs an NVIDIA GPU with its driver, and not --backend software");
        }
        return options;
    }

    /** Whether programs can run natively on the GPU that the workers open. */
    boolean canRunNatively(NativeCuda cuda) {
        return !backend.equals("software") && cuda.isUsable();
    }
}
