package io.hawser.check;

import java.nio.file.Path;
import java.util.Optional;

/**
 * {@code hawser-check --errors}: compares the results of random calls. Exit status: 0 if none differs, 1 if one does or
 * an accepted difference is stale, 2 for a wrong command line or a recorded run with other calls.
 */
public final class ErrorsMain {
    private static final String USAGE = """
        usage: hawser-check --errors [--seed N] [--calls N] [--native FILE] [--json FILE]
                                     [--backend auto|software|nvidia] [--keep]

        Calls functions of the driver and of the runtime with random arguments, legal and illegal, and makes a few
        fixed calls of the runtime, natively and through a broker of its own, over shared memory and over TCP. Compares
        results, outputs and contents of memory. Where there is no NVIDIA GPU, it compares result codes with recorded
        native runs, and the carriers with each other.

          --seed     seed of the calls (1)
          --calls    number of calls (5000)
          --native   a native run of the same seed and number of calls, instead of one here or the records
          --json     writes all results to FILE as well
          --backend  the GPU that the workers open (default auto)
          --keep     keeps logs and outputs""";

    private ErrorsMain() {
    }

    public static void main(String[] args) {
        long seed = Errors.RECORDED_SEED;
        int calls = Errors.RECORDED_CALLS;
        String backend = "auto";
        Optional<Path> trace = Optional.empty();
        Optional<Path> json = Optional.empty();
        boolean keep = false;
        try {
            for (int i = 0; i < args.length; i++) {
                switch (args[i]) {
                    case "--seed" -> seed = SoakMain.number(args, ++i);
                    case "--calls" -> calls = (int) SoakMain.number(args, ++i);
                    case "--native" -> trace = Optional.of(Path.of(SoakMain.value(args, ++i)));
                    case "--json" -> json = Optional.of(Path.of(SoakMain.value(args, ++i)));
                    case "--backend" -> backend = SoakMain.value(args, ++i);
                    case "--keep" -> keep = true;
                    case "-h", "--help" -> {
                        System.out.println(USAGE);
                        return;
                    }
                    default -> throw new UsageException("unknown option: " + args[i]);
                }
            }
        } catch (UsageException e) {
            System.exit(Standalone.refuse(e, "--errors"));
            return;
        }
        System.exit(run(new Errors.Settings(seed, calls, backend, trace, json), keep));
    }

    private static int run(Errors.Settings settings, boolean keep) {
        return Standalone.run(true, keep, (installation, children, workplace) -> {
            try (Progress progress = new Progress()) {
                return new Errors(settings, installation, children, workplace, progress).run();
            }
        });
    }
}
