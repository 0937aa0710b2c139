package io.hawser.check;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * {@code hawser-check --frameworks}: programs of Python's frameworks, natively and through Hawser. Exit status: 0 if
 * all agree, 1 if a case differs or nothing could run, 2 for a wrong command line.
 */
public final class FrameworksMain {
    private static final int MOST_RUNS = 100;
    private static final int MOST_SECONDS = 3600;
    private static final String USAGE = """
        usage: hawser-check --frameworks [--python PROGRAM] [--only SCRIPT[:CASE],...] [--runs N] [--carriers shm,tcp]
                                         [--backend auto|software|nvidia] [--setting NAME=VALUE] [--timeout SECONDS]
                                         [--json FILE] [--markdown] [--keep] [--list]

        Runs small programs of PyTorch, CuPy, JAX and plain Python by `hawser run`, unmodified, with the Python of this
        machine: natively where there is a driver, and over each carrier. Compares the numbers of each case bit by bit,
        or within the tolerance that the case states, and its times. Counts the round trips of a step. A script whose
        framework is not installed is skipped, and named.

          --python    the Python that has the frameworks (HAWSER_PYTHON, else python3)
          --only      the scripts to run, or single cases of them; --list names all
          --runs      runs of each script in each way; times are medians (1)
          --carriers  the carriers to test (shm,tcp)
          --backend   the GPU that the workers open (auto)
          --setting   a setting of the broker; may be repeated. hawser.libraries.path is that of Python's wheels
                      and the broker's own, unless it is named
          --timeout   seconds after which a script counts as hung (300)
          --json      writes all results to FILE as well
          --markdown  prints the table as Markdown
          --keep      keeps logs and outputs""";

    private FrameworksMain() {
    }

    public static void main(String[] args) {
        Optional<Path> json = Optional.empty();
        boolean markdown = false;
        boolean keep = false;
        boolean list = false;
        Frameworks.Settings settings = new Frameworks.Settings();
        try {
            for (int i = 0; i < args.length; i++) {
                switch (args[i]) {
                    case "--python" -> settings.python = SoakMain.value(args, ++i);
                    case "--only" -> settings.only = List.of(SoakMain.value(args, ++i).split(","));
                    case "--runs" -> settings.runs = number(args, ++i, MOST_RUNS);
                    case "--carriers" -> settings.carriers = carriers(SoakMain.value(args, ++i));
                    case "--backend" -> settings.backend = SoakMain.value(args, ++i);
                    case "--setting" -> settings.broker.add(SoakMain.value(args, ++i));
                    case "--timeout" -> settings.timeout = Duration.ofSeconds(number(args, ++i, MOST_SECONDS));
                    case "--json" -> json = Optional.of(Path.of(SoakMain.value(args, ++i)));
                    case "--markdown" -> markdown = true;
                    case "--keep" -> keep = true;
                    case "--list" -> list = true;
                    case "-h", "--help" -> {
                        System.out.println(USAGE);
                        return;
                    }
                    default -> throw new UsageException("unknown option: " + args[i]);
                }
            }
        } catch (UsageException e) {
            System.exit(Standalone.refuse(e, "--frameworks"));
            return;
        }
        System.exit(run(settings, json, markdown, keep, list));
    }

    private static int number(String[] args, int at, int most) throws UsageException {
        long number = SoakMain.number(args, at);
        if (number < 1 || number > most) {
            throw new UsageException(args[at - 1] + " needs a number of 1 to " + most + ": " + number);
        }
        return (int) number;
    }

    private static Set<Way> carriers(String text) throws UsageException {
        Set<Way> carriers = EnumSet.noneOf(Way.class);
        for (String name : text.split(",")) {
            carriers.add(Arrays.stream(Way.values()).filter(w -> w != Way.NATIVE && w.label().equals(name)).findAny()
                .orElseThrow(() -> new UsageException("there is no such carrier: " + name)));
        }
        return carriers;
    }

    private static int run(Frameworks.Settings settings, Optional<Path> json, boolean markdown, boolean keep,
        boolean list) {
        return Standalone.run(settings.carriers.contains(Way.SHM), keep, (installation, children, workplace) -> {
            try (Progress progress = new Progress()) {
                Frameworks frameworks = new Frameworks(settings, installation, children, workplace, progress);
                if (list) {
                    frameworks.names().forEach(System.out::println);
                    return true;
                }
                FrameworkReport report = frameworks.run();
                progress.close();
                System.out.print(report.text(markdown));
                json.ifPresent(report::write);
                return report.isGood();
            }
        });
    }
}
