package io.hawser.check;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The command line of {@code hawser-check --moves}.
 *
 * @param help only print the usage.
 * @param isNvidia whether the workers open NVIDIA's GPUs; else the software GPU with two devices.
 * @param carrier of all guests.
 * @param sets some of {@link #SETS}.
 * @param mib memory of the program of the set memory.
 * @param moves number of moves of that set.
 * @param steps of training.
 * @param python the interpreter.
 * @param limitS longest wait for a program, in seconds.
 * @param database JDBC URL of a PostgreSQL database for a pool of two brokers; empty: one broker.
 * @param settings of each broker, {@code name=value} each.
 * @param json file for the results as JSON.
 * @param markdown print the table as Markdown.
 * @param keep whether logs and outputs stay.
 */
record MovesOptions(boolean help, boolean isNvidia, Way carrier, List<String> sets, int mib, int moves, int steps,
    String python, int limitS, Optional<String> database, List<String> settings, Optional<Path> json, boolean markdown,
    boolean keep) {
    static final String MEMORY = "memory";
    static final List<String> SETS = List.of(MEMORY, "gpt", "conv");
    private static final int MOST_MIB = 1 << 20;
    private static final int MOST_MOVES = 1000;
    private static final int MOST_STEPS = 1_000_000;
    private static final int MOST_S = 3600;

    static final String USAGE = """
        usage: hawser-check --moves [--backend auto|software|nvidia] [--carrier shm|tcp] [--sets memory,gpt,conv]
                                    [--mib N] [--moves N] [--steps N] [--python PYTHON] [--limit SECONDS]
                                    [--database URL] [--setting NAME=VALUE] [--json FILE] [--markdown] [--keep]

        Moves a vGPU while its program works, and measures how long the program waits. Starts a broker of its own. Of
        two GPUs the vGPU uses the one and the other in turn; with one GPU its sessions get other workers there. With a
        database it starts two brokers as a pool. The vGPU moves to the other broker each time; the first move of a set
        is a drain of its broker.

          memory     drv_idle_rounds adds to all of its memory in rounds, and checks the values at the end
          gpt, conv  PyTorch trains a small GPT, or convolutions with batch norms; at least 50 steps lie between two
                     moves, and the losses of all steps must have the same bits as without moves

        The table has the moves that ended well, the others, the time of the moves, and the longest time between two
        rounds or steps, without and with moves. A refused move is no failure; its reason is printed.

          --backend   the GPU that the workers open (auto)
          --carrier   carrier of all guests (tcp)
          --sets      the sets to run (NVIDIA: all; software: memory)
          --mib       memory of the set memory (NVIDIA: 20480; software: 64)
          --moves     number of moves of the set memory (4)
          --steps     steps of training (2000)
          --python    the Python that has PyTorch ($HAWSER_PYTHON, or python3)
          --limit     longest wait for a program, in seconds (300)
          --database  jdbc:postgresql://HOST:PORT/NAME of an empty database for a pool of two brokers; user and
                      password by --setting, or HAWSER_DATABASE_PASSWORD
          --setting   a setting of each broker; may be repeated
          --json      writes all results to FILE as well
          --markdown  prints the table as Markdown
          --keep      keeps logs and outputs

        Exit code: 0 after a measurement, 1 if a program failed or had another result, or a broker's log reports a
        defect, 2 for a wrong command line.
        """;

    /**
     * Parses the arguments.
     *
     * @param hasGpu whether the machine has an NVIDIA GPU, which {@code auto} opens.
     * @throws UsageException with the error in one line.
     */
    static MovesOptions parse(boolean hasGpu, String... arguments) throws UsageException {
        boolean help = false;
        boolean isNvidia = hasGpu;
        Way carrier = Way.TCP;
        List<String> sets = null;
        int mib = 0;
        int moves = 4;
        int steps = 2000;
        String python = System.getenv().getOrDefault("HAWSER_PYTHON", "python3");
        int limitS = 300;
        Optional<String> database = Optional.empty();
        List<String> settings = new ArrayList<>();
        Optional<Path> json = Optional.empty();
        boolean markdown = false;
        boolean keep = false;
        Arguments rest = new Arguments(arguments);
        while (rest.hasNext()) {
            String option = rest.next();
            switch (option) {
                case "-h", "--help" -> help = true;
                case "--backend" -> {
                    String backend = rest.oneOf("auto", "software", "nvidia");
                    isNvidia = backend.equals("nvidia") || backend.equals("auto") && hasGpu;
                }
                case "--carrier" -> carrier = rest.oneOf("shm", "tcp").equals("shm") ? Way.SHM : Way.TCP;
                case "--sets" -> sets = List.copyOf(rest.someOf(SETS));
                case "--mib" -> mib = rest.number(1, MOST_MIB);
                case "--moves" -> moves = rest.number(1, MOST_MOVES);
                case "--steps" -> steps = rest.number(1, MOST_STEPS);
                case "--python" -> python = rest.value();
                case "--limit" -> limitS = rest.number(1, MOST_S);
                case "--database" -> database = Optional.of(rest.value());
                case "--setting" -> settings.add(rest.setting());
                case "--json" -> json = Optional.of(Path.of(rest.value()));
                case "--markdown" -> markdown = true;
                case "--keep" -> keep = true;
                default -> throw new UsageException("unknown option: " + option);
            }
        }
        if (database.isPresent() && carrier == Way.SHM) {
            throw new UsageException("--database needs --carrier tcp: sessions over a region stay at their broker");
        }
        List<String> chosen = sets != null ? sets : isNvidia ? SETS : List.of(MEMORY);
        return new MovesOptions(help, isNvidia, carrier, chosen, mib != 0 ? mib : isNvidia ? 20_480 : 64, moves, steps,
            python, limitS, database, List.copyOf(settings), json, markdown, keep);
    }

    /** The value of hawser.gpu.backend. */
    String backend() {
        return isNvidia ? "nvidia" : "software";
    }
}
