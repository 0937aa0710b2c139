package io.hawser.check;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/** Runs the test programs in every way. */
final class ProgramCheck {
    /**
     * Each program has a worker and several threads. With fewer processors for each, they would only slow each other
     * down.
     */
    private static final int PROCESSORS_PER_LANE = 3;
    /** These programs exhaust a resource that others need as well, or measure it. */
    private static final Set<String> ALONE = Set.of("allocations", "drv_heap_full", "drv_fill_memory",
        "pinned_concurrent");

    private final Guests guests;
    private final Duration timeout;
    private final Progress progress;

    ProgramCheck(Guests guests, Duration timeout, Progress progress) {
        this.guests = guests;
        this.timeout = timeout;
        this.progress = progress;
    }

    /**
     * Runs each program in each way, several at once if there are enough processors.
     *
     * @param ways includes NATIVE only if there is a driver.
     */
    List<ProgramResult> run(List<String> names, Collection<Way> ways, BrokerChild broker) {
        Map<String, Map<Way, ProgramRun>> runs = new ConcurrentHashMap<>();
        names.forEach(name -> runs.put(name, new ConcurrentHashMap<>()));
        AtomicInteger done = new AtomicInteger();
        int all = names.size() * ways.size();
        int lanes = Math.max(1, Runtime.getRuntime().availableProcessors() / PROCESSORS_PER_LANE);
        for (boolean alone : new boolean[] {false, true}) {
            List<Callable<Void>> work = new ArrayList<>();
            for (String name : names) {
                for (Way way : ways) {
                    if (ALONE.contains(name) == alone) {
                        work.add(() -> {
                            if (way != Way.NATIVE || guests.whyNotNative(name).isEmpty()) {
                                ProgramRun run = run(way, broker, name);
                                runs.get(name).put(way, run);
                                if (run.hung()) {
                                    progress.phase("%s over %s was killed after %.0f s", name, way.label(),
                                        run.seconds());
                                }
                            }
                            progress.step("programs: %d of %d runs, %s %s", done.incrementAndGet(), all, way.label(),
                                name);
                            return null;
                        });
                    }
                }
            }
            runAll(work, alone ? 1 : lanes);
        }
        boolean wantsNative = ways.contains(Way.NATIVE);
        return names.stream().map(name -> {
            Map<Way, ProgramRun> ordered = new EnumMap<>(Way.class);
            ordered.putAll(runs.get(name));
            return new ProgramResult(name, ordered, wantsNative ? guests.whyNotNative(name) : "");
        }).toList();
    }

    private static void runAll(List<Callable<Void>> work, int lanes) {
        try (ExecutorService threads = Executors.newFixedThreadPool(lanes)) {
            for (Future<Void> lane : threads.invokeAll(work)) {
                lane.get();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CheckException("interrupted", e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof CheckException check ? check
                : new CheckException("programs: " + e.getCause(), e.getCause());
        }
    }

    private ProgramRun run(Way way, BrokerChild broker, String name) {
        long start = System.nanoTime();
        Guests.Started program = guests.start(way, broker, name, List.of());
        boolean ended = guests.children().await(program.process(), timeout);
        return ProgramRun.of(program, !ended, (System.nanoTime() - start) * 1e-9);
    }
}
