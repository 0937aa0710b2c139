package io.hawser.check;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Measures the session starts of one vGPU while another vGPU connects and disconnects in a loop. */
final class Starts {
    private static final int POOL_SIZE = 2;
    private static final double GOAL = 2; // times the start from a full pool
    private static final Duration PROGRAM_LIMIT = Duration.ofSeconds(180);
    private static final int REFUSED_PAUSE_MS = 10;
    private static final String BROKER = "starts";
    private static final String OTHER = "other"; // the attacked vGPU
    private static final String PROGRAM = "drv_vector_add";
    // Both vGPUs share a GPU and so a pool. All clients have one address here.
    private static final List<String> SETTINGS = List.of("-Dhawser.listen.max-per-peer=400",
        "-Dhawser.vgpus.attacker.gpus=0", "-Dhawser.vgpus.other.gpus=0", "-Dhawser.vgpus.default.gpus=0");

    private final Installation installation;
    private final Children children;
    private final Workplace workplace;
    private final String backend;
    private final int clients;
    private final int rounds;
    private final Duration pause;
    private BrokerChild broker;
    private Guests guests;
    private VanishingClients other;

    /**
     * Prepares a run.
     *
     * @param clients number of clients that connect and disconnect.
     * @param rounds number of measured starts of each kind.
     * @param pause between two starts of the other vGPU.
     */
    Starts(Installation installation, Children children, Workplace workplace, String backend, int clients, int rounds,
        Duration pause) {
        this.installation = installation;
        this.children = children;
        this.workplace = workplace;
        this.backend = backend;
        this.clients = clients;
        this.rounds = rounds;
        this.pause = pause;
    }

    /** Times of starts, in ms. */
    private record Times(double[] welcome, double[] program) {}

    /** Measures and prints the result. */
    void run() {
        broker = BrokerChild.start(installation, children, workplace, System.getenv(), backend, BROKER, POOL_SIZE,
            SETTINGS);
        try {
            guests = new Guests(installation, null, children, workplace.folder());
            String token = broker.token(OTHER);
            other = clients(token);
            measure(1); // the first starts load classes and files
            Times quiet = measure(rounds);
            AtomicInteger sessions = new AtomicInteger();
            AtomicInteger refused = new AtomicInteger();
            Times attacked;
            long began;
            long took;
            try (ExecutorService attackers = Executors.newVirtualThreadPerTaskExecutor()) {
                VanishingClients attacker = clients(broker.token("attacker"));
                began = System.nanoTime();
                for (int i = 0; i < clients; i++) {
                    attackers.submit(() -> attack(attacker, sessions, refused));
                }
                try {
                    pause(pause);
                    attacked = measure(rounds);
                    took = System.nanoTime() - began;
                } finally {
                    attackers.shutdownNow();
                }
            }
            print(quiet, attacked);
            System.out.printf("attacker: %d clients, %d sessions and %d refusals in %.0f s%n", clients,
                sessions.get(), refused.get(), took / 1e9);
        } finally {
            broker.close();
        }
    }

    private VanishingClients clients(String token) {
        return new VanishingClients(broker.get("/api/v1/broker").path("guestEndpoint").asText(),
            Long.parseUnsignedLong(broker.get("/api/v1/broker").path("descriptionHash").asText(), 16), token);
    }

    private static Void attack(VanishingClients attacker, AtomicInteger sessions, AtomicInteger refused)
        throws InterruptedException {
        while (!Thread.currentThread().isInterrupted()) {
            try {
                attacker.start();
                sessions.incrementAndGet();
            } catch (IOException e) {
                refused.incrementAndGet(); // or the end interrupted it
                TimeUnit.MILLISECONDS.sleep(REFUSED_PAUSE_MS);
            }
        }
        return null;
    }

    private Times measure(int count) {
        List<Double> welcome = new ArrayList<>();
        List<Double> program = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            pause(pause);
            try {
                welcome.add(other.start() / 1e6);
            } catch (IOException e) {
                throw new CheckException("the other vGPU gets no worker: " + e.getMessage(), e);
            }
            pause(pause);
            program.add(program());
        }
        return new Times(sorted(welcome), sorted(program));
    }

    private double program() {
        long began = System.nanoTime();
        Guests.Started started = guests.start(Way.TCP, broker, PROGRAM, List.of(), OTHER);
        boolean isDone = children.await(started.process(), PROGRAM_LIMIT);
        double ms = (System.nanoTime() - began) / 1e6;
        if (!isDone || started.process().exitValue() != 0) {
            throw new CheckException(PROGRAM + " of the other vGPU fails; see " + started.err());
        }
        return ms;
    }

    private static double[] sorted(List<Double> values) {
        double[] sorted = values.stream().mapToDouble(Double::doubleValue).toArray();
        Arrays.sort(sorted);
        return sorted;
    }

    private static void print(Times quiet, Times attacked) {
        Table table = new Table("lrrrrr", "another vGPU's", "median, ms", "longest", "attacked: median", "longest",
            "ratio of medians");
        row(table, "start, connect to WELCOME", quiet.welcome, attacked.welcome);
        row(table, PROGRAM + ", whole run", quiet.program, attacked.program);
        System.out.print(table.text(false));
        double ratio = Ratios.median(attacked.welcome) / Ratios.median(quiet.welcome);
        System.out.printf("goal: at most %.0f times the start from a full pool: %s%n", GOAL,
            ratio <= GOAL ? "reached" : "MISSED");
    }

    private static void row(Table table, String name, double[] quiet, double[] attacked) {
        table.row(name, number(Ratios.median(quiet)), number(quiet[quiet.length - 1]), number(Ratios.median(attacked)),
            number(attacked[attacked.length - 1]), number(Ratios.median(attacked) / Ratios.median(quiet)));
    }

    private static String number(double value) {
        return "%.1f".formatted(value);
    }

    private static void pause(Duration time) {
        try {
            TimeUnit.MILLISECONDS.sleep(time.toMillis()); // the benchmark starts programs at these intervals
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CheckException("interrupted", e);
        }
    }
}
