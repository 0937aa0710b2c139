package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Runs the benchmark in every way and collects the figures. One thread. */
final class Benchmarks {
    private static final int IDLE_SESSIONS = 16;
    private static final int IDLE_S = 5;
    private static final String AT_ONCE_PROGRAM = "drv_vector_add";
    /** Limit of each benchmark; a full one takes half a minute on a real GPU. */
    private static final Duration LIMIT = Duration.ofSeconds(240);
    /** Wait before the measurement of idle processes, until background compilers have finished. */
    private static final int SETTLE_MS = 3000;

    /**
     * The amount of measurement.
     *
     * @param arguments of the benchmark for all parts.
     * @param starts the number of session starts for one figure.
     * @param tenants the numbers of programs that run at once.
     * @param idle whether to measure idle sessions.
     */
    record Extent(List<String> arguments, int starts, List<Integer> tenants, boolean idle) {
        /** The amount for the options, the kind of GPU, and copies of at most this many MiB. */
        static Extent of(Options options, boolean software, long maxMib) {
            long most = Math.min(options.quick() ? 16 : 256, maxMib);
            List<String> arguments = new ArrayList<>(List.of("--max", Long.toString(most),
                "--light", software ? "1" : "0"));
            if (options.quick()) {
                arguments.addAll(List.of("--budget", "20", "--warm-up", "500", "--small", "2000", "--scale", "10"));
            }
            return new Extent(arguments, options.quick() ? 1 : 5, options.tenants(), !options.quick());
        }
    }

    private final Guests guests;
    private final HeldPrograms held;
    private final Extent extent;
    private final Progress progress;
    private final Figures figures = new Figures();
    private final List<String> failures = new ArrayList<>();

    Benchmarks(Guests guests, Extent extent, Progress progress) {
        this.guests = guests;
        held = new HeldPrograms(guests.children(), LIMIT);
        this.extent = extent;
        this.progress = progress;
    }

    Figures figures() {
        return figures;
    }

    /** The figures that could not be measured, with reasons; empty if there are none. */
    List<String> failures() {
        return failures;
    }

    /** Runs one measurement. Its failure, even by a fault of Hawser, must not prevent the others. */
    private void attempt(String what, Runnable measurement) {
        try {
            progress.phase("%s", what);
            measurement.run();
        } catch (CheckException e) {
            if (Thread.currentThread().isInterrupted() || guests.children().isClosed()) {
                throw e;
            }
            failures.add(what + ": " + e.getMessage());
            progress.phase("%s FAILED: %s", what, e.getMessage());
        }
    }

    /** Waits until the test programs' sessions have ended. A session that stays would distort figures. */
    void awaitPrograms(BrokerChild broker) {
        attempt("the end of the programs' sessions", broker::awaitNoSession);
    }

    /** Measures what the machine achieves without CUDA. */
    void limits(Way any, BrokerChild broker) {
        attempt("limits of this machine: a plain socket, shared memory",
            () -> run(any, broker, List.of("limits")).lines().forEach(
                line -> figures.putLimit(line.path("name").asText(), line.path("value").asDouble())));
    }

    /** Measures calls, copies and applications. */
    void measure(Collection<Way> ways, BrokerChild broker) {
        for (Way way : ways) {
            attempt("calls, copies and loops: " + way.label(), () -> {
                settle(way, broker);
                for (JsonNode line : run(way, broker, List.of("calls", "small", "copies", "managed",
                    "applications")).lines()) {
                    String name = line.path("name").asText();
                    figures.put(way, name, line.path("value").asDouble());
                    if (line.has("mean")) {
                        figures.putMean(way, name, line.path("mean").asDouble());
                    }
                }
            });
        }
    }

    /**
     * Measures the starts of sessions.
     *
     * @param prefix of the figures' names: {@code start.} or {@code start.cold_}.
     */
    void starts(Collection<Way> ways, BrokerChild broker, String prefix) {
        for (Way way : ways) {
            attempt("starts of sessions, " + (broker.poolSize() > 0 ? "from the pool: " : "without a pool: ")
                + way.label(), () -> {
                    Map<String, List<Double>> all = new HashMap<>();
                    for (int i = 0; i < extent.starts(); i++) {
                        settle(way, broker);
                        for (JsonNode line : run(way, broker, List.of("start")).lines()) {
                            all.computeIfAbsent(line.path("name").asText(), n -> new ArrayList<>())
                                .add(line.path("value").asDouble());
                        }
                    }
                    all.forEach((name, values) -> figures.put(way, name.replace("start.", prefix), median(values)));
                });
        }
    }

    private static double median(List<Double> values) {
        return values.stream().sorted().toList().get(values.size() / 2);
    }

    /** Measures several identical programs at once, each with a fixed amount of work. */
    void tenants(Collection<Way> ways, BrokerChild broker) {
        for (int count : extent.tenants()) {
            for (Way way : ways) {
                attempt(count + (count == 1 ? " tenant: " : " tenants: ") + way.label(), () -> {
                    settle(way, broker);
                    List<Double> ms = new ArrayList<>();
                    List<String> arguments = arguments("tenant");
                    for (Guests.Started tenant : held.together(count,
                        i -> guests.start(way, broker, Installation.BENCHMARK, arguments), () -> {})) {
                        tenant.lines().forEach(line -> ms.add(line.path("value").asDouble()));
                    }
                    double slowest = ms.stream().mapToDouble(Double::doubleValue).max().orElseThrow();
                    double fastest = ms.stream().mapToDouble(Double::doubleValue).min().orElseThrow();
                    figures.put(way, "tenants." + count + ".spread", slowest / fastest);
                    figures.put(way, "tenants." + count + ".total", count / slowest * 1e3);
                });
            }
        }
    }

    /**
     * Measures programs that start at once, each with one session. The processor time is that of all workers, with the
     * workers that the pool starts meanwhile, but without what its ready workers have used before.
     */
    void atOnce(Collection<Way> ways, BrokerChild broker, int count) {
        for (Way way : ways) {
            attempt(count + " programs at once: " + way.label(), () -> {
                settle(way, broker);
                // Loads files and, once, the device code.
                held.run(guests.start(way, broker, AT_ONCE_PROGRAM, List.of()));
                settle(way, broker);
                double before = processorSeconds(way, broker);
                long began = System.nanoTime();
                List<Guests.Started> all = new ArrayList<>();
                List<CompletableFuture<Double>> ends = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    Guests.Started program = guests.start(way, broker, AT_ONCE_PROGRAM, List.of());
                    all.add(program);
                    ends.add(program.process().onExit().thenApply(p -> (System.nanoTime() - began) * 1e-9));
                }
                held.awaitEnd(all);
                List<Double> seconds = ends.stream().map(CompletableFuture::join).sorted().toList();
                if (way != Way.NATIVE) {
                    broker.awaitNoSession();
                }
                figures.put(way, "start.at_once", seconds.getLast());
                figures.put(way, "start.at_once_median", seconds.get(count / 2));
                figures.put(way, "start.at_once_processor", (processorSeconds(way, broker) - before) / count);
            });
        }
    }

    private static double processorSeconds(Way way, BrokerChild broker) {
        return way == Way.NATIVE ? ProcessorTime.ofEndedChildren() : ProcessorTime.ofChildren(broker.process());
    }

    /** Measures the processor time and memory of idle sessions. */
    void idle(Collection<Way> carriers, BrokerChild broker) {
        if (!extent.idle()) {
            return;
        }
        for (Way way : carriers) {
            attempt(IDLE_SESSIONS + " idle sessions: " + way.label(), () -> {
                settle(way, broker);
                List<String> arguments = List.of("--idle", "1", "--memory", "1");
                held.together(IDLE_SESSIONS, i -> guests.start(way, broker, "hold", arguments),
                    () -> measureIdle(way, broker));
                broker.awaitNoSession();
            });
        }
    }

    private void measureIdle(Way way, BrokerChild broker) {
        broker.awaitReady(); // so that no worker starts during the measurement
        pause(SETTLE_MS);
        List<ProcessHandle> workers = broker.process().children().toList();
        double before = cpuSeconds(List.of(broker.process()));
        double workersBefore = cpuSeconds(workers);
        pause(IDLE_S * 1000);
        figures.put(way, "idle.broker", percent(before, cpuSeconds(List.of(broker.process()))));
        figures.put(way, "idle.workers", percent(workersBefore, cpuSeconds(workers)));
        figures.put(way, "idle.broker_memory", ProcessMemory.residentKib(broker.process().pid()) / 1024.0);
    }

    private static double percent(double before, double after) {
        return 100 * (after - before) / IDLE_S;
    }

    private static double cpuSeconds(List<ProcessHandle> processes) {
        return processes.stream().flatMap(p -> p.info().totalCpuDuration().stream())
            .mapToDouble(d -> d.toNanos() * 1e-9).sum();
    }

    private Guests.Started run(Way way, BrokerChild broker, List<String> parts) {
        Guests.Started program =
            guests.start(way, broker, Installation.BENCHMARK, arguments(parts.toArray(new String[0])));
        held.run(program);
        return program;
    }

    private List<String> arguments(String... parts) {
        List<String> arguments = new ArrayList<>(Arrays.asList(parts));
        arguments.addAll(extent.arguments());
        return arguments;
    }

    /** Waits until earlier processes have ended and the pool is full. */
    private static void settle(Way way, BrokerChild broker) {
        if (way != Way.NATIVE) {
            broker.awaitNoSession();
            broker.awaitReady();
        }
    }

    private static void pause(int ms) {
        try {
            Thread.sleep(ms); // other processes cannot signal this one
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CheckException("interrupted", e);
        }
    }
}
