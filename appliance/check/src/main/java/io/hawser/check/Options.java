package io.hawser.check;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The command line.
 *
 * @param help only print the usage.
 * @param quick run the short selection.
 * @param markdown print the tables as Markdown.
 * @param json file for the results as JSON.
 * @param programs names of programs; empty for all (or the quick selection).
 * @param runPrograms whether to run test programs.
 * @param benchmarks whether to measure.
 * @param carriers TCP, SHM or both, never NATIVE.
 * @param backend auto, software or nvidia.
 * @param tenants numbers of programs at once, each 1 to {@link #MAX_TENANTS}; may be empty.
 * @param atOnce number of programs that start at once, 1 to {@link #MAX_AT_ONCE}; 0 for no such measurement.
 * @param settings of the brokers, {@code name=value} each.
 * @param timeout of each test program.
 * @param keep whether logs and outputs stay.
 * @param cudaLibrary folder of libcudart.so.13 for native runs.
 */
record Options(boolean help, boolean quick, boolean markdown, Optional<Path> json, List<String> programs,
    boolean runPrograms, boolean benchmarks, Set<Way> carriers, String backend, List<Integer> tenants,
    int atOnce, List<String> settings, Duration timeout, boolean keep, Optional<Path> cudaLibrary) {

    /** Each tenant is a session with a worker; a region has 16 slots. */
    static final int MAX_TENANTS = 16;
    private static final int MAX_TIMEOUT_S = 3600;
    private static final int AT_ONCE = 32;
    private static final int MAX_AT_ONCE = 64; // slots of a region

    static final String USAGE = """
        usage: hawser-check [--quick] [--json FILE] [--markdown] [--programs NAME,...|all|none] [--no-benchmarks]
                            [--carriers tcp,shm] [--backend auto|software|nvidia] [--tenants 1,2,4,8,16]
                            [--at-once N] [--setting NAME=VALUE] [--timeout SECONDS] [--cuda-lib DIR] [--keep]

        Starts a broker of its own and runs test programs and benchmarks through it over each carrier and, where there
        is an NVIDIA driver, natively; compares exit codes, output and times, and prints the results.

          --quick          fewer programs, shorter measurements, no tenants, no programs at once
          --json FILE      writes all results to FILE as well
          --markdown       prints the tables as Markdown
          --programs       the programs to run (all, with --quick a selection); none runs no program
          --no-benchmarks  measures nothing, except what --at-once asks for
          --carriers       the carriers to test (tcp,shm)
          --backend        the GPU that the workers open (auto: NVIDIA's if there is one, else the software GPU)
          --tenants        the numbers of identical programs that run at once (1,2,4,8,16); none skips them
          --at-once        the number of programs that start at once (32, at most 64), each a session; none skips them
          --setting        a setting of the brokers, such as hawser.pool.max-starting=8; may be repeated
          --timeout        seconds after which a program counts as hung (60); benchmarks have limits of their own
          --cuda-lib       folder of libcudart.so.13 for native runs, if the linker does not find it
          --keep           keeps logs and outputs, and prints their folder

        As the first argument, --soak, --errors, --starts, --shares, --swaps, --moves or --frameworks selects another
        check, which has a --help of its own.

        Exit code: 0 if all programs agree, 1 if one does not, 2 for a wrong command line, 3 if the check could not be
        carried out. A program that uses an unsupported function is named with that function, and is not a failure.
        """;

    /** Parses the arguments. @throws UsageException with the error in one line. */
    static Options parse(String... arguments) throws UsageException {
        boolean help = false;
        boolean quick = false;
        boolean markdown = false;
        boolean keep = false;
        boolean benchmarks = true;
        boolean runPrograms = true;
        Optional<Path> json = Optional.empty();
        Optional<Path> cudaLibrary = Optional.empty();
        List<String> programs = List.of();
        Set<Way> carriers = EnumSet.of(Way.TCP, Way.SHM);
        String backend = "auto";
        List<Integer> tenants = null;
        int atOnce = -1;
        List<String> settings = new ArrayList<>();
        Duration timeout = Duration.ofSeconds(60);
        Arguments rest = new Arguments(arguments);
        while (rest.hasNext()) {
            String option = rest.next();
            switch (option) {
                case "-h", "--help" -> help = true;
                case "--quick" -> quick = true;
                case "--markdown" -> markdown = true;
                case "--keep" -> keep = true;
                case "--no-benchmarks" -> benchmarks = false;
                case "--json" -> json = Optional.of(Path.of(rest.value()));
                case "--cuda-lib" -> cudaLibrary = Optional.of(Path.of(rest.value()));
                case "--programs" -> {
                    String names = rest.value();
                    runPrograms = !names.equals("none");
                    programs = switch (names) {
                        case "none" -> List.of();
                        case "all" -> List.of("all");
                        default -> Arguments.list(names);
                    };
                }
                case "--carriers" -> carriers = rest.ways(Way.TCP, Way.SHM);
                case "--backend" -> backend = rest.oneOf("auto", "software", "nvidia");
                case "--tenants" -> tenants = tenants(rest);
                case "--at-once" -> atOnce = atOnce(rest);
                case "--setting" -> settings.add(rest.setting());
                case "--timeout" -> timeout = Duration.ofSeconds(rest.number(1, MAX_TIMEOUT_S));
                default -> throw new UsageException("unknown argument: " + option);
            }
        }
        if (tenants == null) {
            tenants = quick ? List.of() : List.of(1, 2, 4, 8, 16);
        }
        if (atOnce < 0) {
            atOnce = quick || !benchmarks ? 0 : AT_ONCE;
        }
        return new Options(help, quick, markdown, json, programs, runPrograms, benchmarks, carriers, backend, tenants,
            atOnce, List.copyOf(settings), timeout, keep, cudaLibrary);
    }

    private static List<Integer> tenants(Arguments rest) throws UsageException {
        List<Integer> counts = new ArrayList<>();
        String text = rest.value();
        if (!text.equals("none")) {
            for (String count : Arguments.list(text)) {
                counts.add(rest.number(count, 1, MAX_TENANTS));
            }
        }
        return List.copyOf(counts);
    }

    private static int atOnce(Arguments rest) throws UsageException {
        String text = rest.value();
        return text.equals("none") ? 0 : rest.number(text, 1, MAX_AT_ONCE);
    }
}
