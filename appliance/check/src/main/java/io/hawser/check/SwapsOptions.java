package io.hawser.check;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The command line of {@code hawser-check --swaps}.
 *
 * @param help only print the usage.
 * @param isNvidia whether the workers open an NVIDIA GPU; else the software GPU.
 * @param carrier of all guests.
 * @param load the programs and their vGPUs.
 * @param sets some of {@link #SETS}.
 * @param limitS longest wait for a program, in seconds.
 * @param settings of the broker, {@code name=value} each, those of the backend first.
 * @param json file for the results as JSON.
 * @param markdown print the tables as Markdown.
 * @param keep whether logs and outputs stay.
 */
record SwapsOptions(boolean help, boolean isNvidia, Way carrier, Load load, Set<String> sets, int limitS,
    List<String> settings, Optional<Path> json, boolean markdown, boolean keep) {
    static final String EXCHANGE = "exchange";
    static final String SERIES = "series";
    static final String NOTEBOOKS = "notebooks";
    static final List<String> SETS = List.of(EXCHANGE, SERIES, NOTEBOOKS);
    private static final int MOST_MIB = 1 << 20;
    private static final int MOST_BLOCKS = 1024; // limit of drv_idle_rounds
    private static final int MOST_ROUNDS = 1_000_000;
    private static final int MOST_TENANTS = 64;
    private static final int MOST_NOTEBOOKS = 256;
    private static final int MOST_S = 3600;
    private static final String SIZE = "[0-9]+[KMGkmg]?";
    private static final String DURATION = "[0-9]+(\\.[0-9]+)?(ms|s|m)";

    static final String USAGE = """
        usage: hawser-check --swaps [--backend auto|software|nvidia] [--carrier shm|tcp]
                                    [--sets exchange,series,notebooks] [--mib N] [--blocks N] [--rounds N]
                                    [--tenants N] [--memory SIZE] [--swap-memory SIZE] [--turn DURATION]
                                    [--notebooks N] [--notebook-mib N] [--notebook-memory SIZE] [--limit SECONDS]
                                    [--setting NAME=VALUE] [--json FILE] [--markdown] [--keep]

        Measures swapping. Starts a broker of its own whose swappable vGPUs together reserve more memory than GPU 0
        has. Programs fill their memory, wait for each other, and then add to all of it in rounds. A program's time
        begins with the end of that wait, and ends with its last round. The time of several programs is the longest
        of their times. Each program checks its values.

          exchange   one tenant alone, then two at once; the figure is 2 x alone / both
          series     all tenants one after the other, then at once; the figure is series / at once
          notebooks  one tenant alone, beside notebooks that have done one round and wait, and alone again

        Each set has a table of times and one of the moves of memory: their number, their bytes, and the median and
        the worst rate of the moves that had bytes. A failed move leaves the memory where it was. The last table
        compares with the goals. A missed goal is no failure.

          --backend          the GPU that the workers open (auto)
          --carrier          carrier of all guests (shm)
          --sets             the sets to run (all)
          --mib, --blocks    memory of a tenant's program, and the number of its blocks (NVIDIA: 40000, 8;
                             software: 100, 3)
          --rounds           rounds of a tenant's program (NVIDIA: 480; software: 30)
          --tenants          tenants of the set series (3)
          --memory           reservation of a tenant; two do not fit on the GPU (NVIDIA: 84G; software: 7230M)
          --swap-memory      the host's memory for swapped sessions, which the broker allocates ahead
                             (NVIDIA: 84G; software: 512M)
          --turn             how long a busy tenant keeps the GPU while another one waits (NVIDIA: 10s;
                             software: 1s)
          --notebooks        number of notebooks (NVIDIA: 30; software: 4)
          --notebook-mib     memory that a notebook uses (NVIDIA: 2048; software: 16)
          --notebook-memory  reservation of a notebook (NVIDIA: 20G; software: 3000M)
          --limit            longest wait for a program to be ready, or to end, in seconds (NVIDIA: 300;
                             software: 120)
          --setting          a setting of the broker; may be repeated
          --json             writes all results to FILE as well
          --markdown         prints the tables as Markdown
          --keep             keeps logs and outputs

        Exit code: 0 after a measurement, 1 if a program failed or the broker's log reports a defect, 2 for a wrong
        command line.
        """;

    /**
     * The programs and their vGPUs.
     *
     * @param mib memory of a tenant's program.
     * @param blocks number of its blocks.
     * @param rounds its rounds.
     * @param tenants number of tenants of the set series.
     * @param memory reservation of a tenant.
     * @param swapMemory the host's memory for swapped sessions.
     * @param turn how long a busy tenant keeps the GPU while another one waits.
     * @param notebooks number of notebooks.
     * @param notebookMib memory that a notebook uses.
     * @param notebookMemory reservation of a notebook.
     */
    record Load(int mib, int blocks, int rounds, int tenants, String memory, String swapMemory, String turn,
        int notebooks, int notebookMib, String notebookMemory) {}

    /** A load whose values the options replace one by one. */
    private static final class Draft {
        int mib;
        int blocks;
        int rounds;
        int tenants = 3;
        String memory;
        String swapMemory;
        String turn;
        int notebooks;
        int notebookMib;
        String notebookMemory;
        int limitS;
        final List<String> settings = new ArrayList<>();

        Draft(boolean isNvidia) {
            if (isNvidia) {
                // An H200 (143,771 MiB) runs one program for 15 s. Notebooks together reserve four times its memory.
                mib = 40_000;
                blocks = 8;
                rounds = 480;
                memory = "84G";
                swapMemory = "84G";
                turn = "10s";
                notebooks = 30;
                notebookMib = 2048;
                notebookMemory = "20G";
                limitS = 300;
                settings.add("hawser.swap.stay=1s");
            } else {
                // The software GPU has 12,288 MiB. Beside a tenant there is room for one notebook.
                mib = 100;
                blocks = 3;
                rounds = 30;
                memory = "7230M";
                swapMemory = "512M";
                turn = "1s";
                notebooks = 4;
                notebookMib = 16;
                notebookMemory = "3000M";
                limitS = 120;
                settings.add("hawser.swap.stay=0.2s");
            }
        }

        Load load() {
            return new Load(mib, blocks, rounds, tenants, memory, swapMemory, turn, notebooks, notebookMib,
                notebookMemory);
        }
    }

    /**
     * Parses the arguments.
     *
     * @param hasGpu whether the machine has an NVIDIA GPU, which {@code auto} opens.
     * @throws UsageException with the error in one line.
     */
    static SwapsOptions parse(boolean hasGpu, String... arguments) throws UsageException {
        boolean isNvidia = isNvidia(hasGpu, arguments);
        Draft draft = new Draft(isNvidia);
        boolean help = false;
        Way carrier = Way.SHM;
        Set<String> sets = Set.copyOf(SETS);
        Optional<Path> json = Optional.empty();
        boolean markdown = false;
        boolean keep = false;
        Arguments rest = new Arguments(arguments);
        while (rest.hasNext()) {
            String option = rest.next();
            switch (option) {
                case "-h", "--help" -> help = true;
                case "--backend" -> rest.value(); // see isNvidia
                case "--carrier" -> carrier = rest.oneOf("shm", "tcp").equals("shm") ? Way.SHM : Way.TCP;
                case "--sets" -> sets = Set.copyOf(rest.someOf(SETS));
                case "--mib" -> draft.mib = rest.number(1, MOST_MIB);
                case "--blocks" -> draft.blocks = rest.number(1, MOST_BLOCKS);
                case "--rounds" -> draft.rounds = rest.number(1, MOST_ROUNDS);
                case "--tenants" -> draft.tenants = rest.number(2, MOST_TENANTS);
                case "--memory" -> draft.memory = rest.matching(SIZE, "84G");
                case "--swap-memory" -> draft.swapMemory = rest.matching(SIZE, "84G");
                case "--turn" -> draft.turn = rest.matching(DURATION, "10s");
                case "--notebooks" -> draft.notebooks = rest.number(1, MOST_NOTEBOOKS);
                case "--notebook-mib" -> draft.notebookMib = rest.number(1, MOST_MIB);
                case "--notebook-memory" -> draft.notebookMemory = rest.matching(SIZE, "20G");
                case "--limit" -> draft.limitS = rest.number(1, MOST_S);
                case "--setting" -> draft.settings.add(rest.setting());
                case "--json" -> json = Optional.of(Path.of(rest.value()));
                case "--markdown" -> markdown = true;
                case "--keep" -> keep = true;
                default -> throw new UsageException("unknown option: " + option);
            }
        }
        return new SwapsOptions(help, isNvidia, carrier, draft.load(), sets, draft.limitS, List.copyOf(draft.settings),
            json, markdown, keep);
    }

    /** Whether the last backend is NVIDIA's. It is read first, because the defaults depend on it. */
    private static boolean isNvidia(boolean hasGpu, String... arguments) throws UsageException {
        boolean isNvidia = hasGpu;
        Arguments rest = new Arguments(arguments);
        while (rest.hasNext()) {
            if (rest.next().equals("--backend")) {
                String backend = rest.oneOf("auto", "software", "nvidia");
                isNvidia = backend.equals("nvidia") || backend.equals("auto") && hasGpu;
            }
        }
        return isNvidia;
    }

    /** The value of hawser.gpu.backend. */
    String backend() {
        return isNvidia ? "nvidia" : "software";
    }

    /** The number of tenants' vGPUs. */
    int tenants() {
        return sets.contains(SERIES) ? load.tenants : 2;
    }

    /** The number of notebooks' vGPUs. */
    int notebooks() {
        return sets.contains(NOTEBOOKS) ? load.notebooks : 0;
    }

    /** Writes the load, for readers of the results. */
    void write(ObjectNode node) {
        node.put("backend", backend()).put("mib", load.mib).put("blocks", load.blocks).put("rounds", load.rounds)
            .put("tenants", tenants()).put("memory", load.memory).put("swapMemory", load.swapMemory)
            .put("turn", load.turn).put("notebooks", notebooks()).put("notebookMib", load.notebookMib)
            .put("notebookMemory", load.notebookMemory);
        settings.forEach(node.putArray("settings")::add);
    }
}
