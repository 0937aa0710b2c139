package io.hawser.check;

import java.time.Duration;

/**
 * {@code hawser-check --starts}: one vGPU attacks the starts of another. Exit status: 0 after a measurement, 1 if it
 * was impossible, 2 for a wrong command line.
 */
public final class StartsMain {
    private static final String USAGE = """
        usage: hawser-check --starts [--rounds N] [--clients N] [--pause SECONDS] [--backend auto|software|nvidia]
                                     [--keep]

        Starts a broker of its own with two workers in its pool. Measures the start of one vGPU's sessions from the full
        pool, and again while clients of another vGPU connect, wait for a worker and disconnect, in a loop.

          --rounds   measured starts of each kind (10)
          --clients  attacking clients (4)
          --pause    seconds between two measured starts (4)
          --backend  the GPU that the workers open (default auto)
          --keep     keeps logs and outputs""";

    private StartsMain() {
    }

    public static void main(String[] args) {
        int rounds = 10;
        int clients = 4;
        Duration pause = Duration.ofSeconds(4);
        String backend = "auto";
        boolean keep = false;
        try {
            for (int i = 0; i < args.length; i++) {
                switch (args[i]) {
                    case "--rounds" -> rounds = (int) SoakMain.number(args, ++i);
                    case "--clients" -> clients = (int) SoakMain.number(args, ++i);
                    case "--pause" -> pause = Duration.ofSeconds(SoakMain.number(args, ++i));
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
            System.exit(Standalone.refuse(e, "--starts"));
            return;
        }
        System.exit(run(rounds, clients, pause, backend, keep));
    }

    private static int run(int rounds, int clients, Duration pause, String backend, boolean keep) {
        return Standalone.run(false, keep, (installation, children, workplace) -> {
            new Starts(installation, children, workplace, backend, clients, rounds, pause).run();
            return true;
        });
    }
}
