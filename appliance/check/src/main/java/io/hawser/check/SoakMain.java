package io.hawser.check;

import java.time.Duration;

/**
 * {@code hawser-check --soak}: stresses a broker with guests, killed processes and vanishing clients for a bounded
 * time, and then checks for leaks. Exit status: 0 if there are none, 1 if there are, 2 for a wrong command line.
 */
public final class SoakMain {
    private static final String USAGE = """
        usage: hawser-check --soak [--minutes N | --seconds N] [--backend auto|software|nvidia] [--seed N] [--keep]

        Starts a broker of its own and runs programs over both carriers. Kills guests, workers and at the end the broker
        by signal 9. Lets 200 clients connect and vanish at every stage of the handshake. Compares the broker's
        processes, descriptors, threads, memory, quota and shared memory before and after. Fails on a leak.

          --minutes  duration (default 3)
          --backend  the GPU that the workers open (default auto)
          --seed     seed of the random order of events (default 1)
          --keep     keeps logs and outputs""";

    private SoakMain() {
    }

    public static void main(String[] args) {
        Duration time = Duration.ofMinutes(3);
        String backend = "auto";
        long seed = 1;
        boolean keep = false;
        try {
            for (int i = 0; i < args.length; i++) {
                switch (args[i]) {
                    case "--minutes" -> time = Duration.ofMinutes(number(args, ++i));
                    case "--seconds" -> time = Duration.ofSeconds(number(args, ++i));
                    case "--seed" -> seed = number(args, ++i);
                    case "--backend" -> backend = value(args, ++i);
                    case "--keep" -> keep = true;
                    case "-h", "--help" -> {
                        System.out.println(USAGE);
                        return;
                    }
                    default -> throw new UsageException("unknown option: " + args[i]);
                }
            }
        } catch (UsageException e) {
            System.exit(Standalone.refuse(e, "--soak"));
            return;
        }
        System.exit(run(time, backend, seed, keep));
    }

    private static int run(Duration time, String backend, long seed, boolean keep) {
        return Standalone.run(true, keep, (installation, children,
            workplace) -> new Soak(installation, children, workplace, backend, seed).run(time));
    }

    /** The value of an option. */
    static String value(String[] args, int at) throws UsageException {
        if (at >= args.length) {
            throw new UsageException(args[at - 1] + " needs a value");
        }
        return args[at];
    }

    /** The number above 0 of an option. */
    static long number(String[] args, int at) throws UsageException {
        String value = value(args, at);
        try {
            long number = Long.parseLong(value);
            if (number > 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            throw new UsageException(args[at - 1] + " needs a whole number: " + value);
        }
        throw new UsageException(args[at - 1] + " must be above 0: " + value);
    }
}
