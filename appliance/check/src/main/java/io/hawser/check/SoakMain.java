package io.hawser.check;

import java.time.Duration;

/**
 * {@code hawser-check --soak}: a broker under everything that guests, workers and operators do to it, for a bounded
 * time, and what is left afterwards. Exit status: 0 when nothing has leaked, 1 when something has, 2 for a wrong
 * command line.
 */
public final class SoakMain {
    private static final String USAGE = """
        usage: hawser-check --soak [--minutes N | --seconds N] [--backend auto|software|nvidia] [--seed N] [--keep]

        Starts a broker of its own, lets programs come and go over both carriers, kills guests, workers and at the end
        the broker by signal 9, lets 200 clients connect and vanish at every stage of the handshake, and compares the
        broker's processes, descriptors, threads, memory, quota and shared memory before and after. Fails on a leak.

          --minutes  how long (default 3)
          --backend  which GPU the workers open (default auto)
          --seed     of what happens when (default 1)
          --keep     keeps logs and outputs""";

    private SoakMain() {
    }

    /** Runs it. */
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
                    default -> throw new UsageException("unknown option: " + args[i]);
                }
            }
        } catch (UsageException e) {
            System.err.println("hawser-check: " + e.getMessage() + "\n" + USAGE);
            System.exit(2);
            return;
        }
        System.exit(run(time, backend, seed, keep));
    }

    private static int run(Duration time, String backend, long seed, boolean keep) {
        try (Workplace workplace = Workplace.make(true, keep); Children children = new Children()) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                children.close();
                workplace.close();
            }));
            try {
                Installation installation = Installation.ofLauncher();
                boolean clean = new Soak(installation, children, workplace, backend, seed).run(time);
                if (!clean) {
                    workplace.keep();
                    System.out.println("logs and outputs: " + workplace.folder());
                }
                return clean ? 0 : 1;
            } catch (CheckException e) {
                workplace.keep();
                System.err.println("hawser-check: " + e.getMessage() + "\nlogs and outputs: " + workplace.folder());
                return 1;
            }
        }
    }

    /** The value behind an option. */
    static String value(String[] args, int at) throws UsageException {
        if (at >= args.length) {
            throw new UsageException(args[at - 1] + " needs a value");
        }
        return args[at];
    }

    /** The number above 0 behind an option. */
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
