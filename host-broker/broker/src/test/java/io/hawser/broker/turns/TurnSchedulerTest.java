package io.hawser.broker.turns;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.turns.TurnPage;
import io.hawser.simulator.replay.Replay;
import io.hawser.turns.RecordingEncoder;
import io.hawser.turns.TurnRecorder;
import io.hawser.turns.TurnRules;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The scheduler's thread. The test plays the workers at the other ends of pages and bells. */
class TurnSchedulerTest {
    private static final long LIMIT_NS = 60_000_000_000L;
    private static final List<String> GPU = List.of("gpu-0");

    private TurnScheduler scheduler;

    /** A worker's end of a page and a bell. */
    private static final class Worker implements AutoCloseable {
        private final TurnScheduler.Place place;
        private final TurnPage page;
        private final int bell;

        Worker(TurnScheduler scheduler, String vgpu, List<String> gpus) throws IOException {
            place = scheduler.place(vgpu, 100, gpus);
            page = TurnPage.map(place.pageDescriptor());
            bell = place.bellDescriptor();
            place.begin();
        }

        void says(int state) throws IOException {
            page.setState(state);
            EventFd.of(bell).signal(); // the scheduler's descriptor, since both run in one process
        }

        int permit() {
            return page.permit();
        }

        @Override
        public void close() {
            place.end();
            page.close();
        }
    }

    @BeforeEach
    void start() throws IOException {
        scheduler = scheduler(5_000_000);
    }

    private static TurnScheduler scheduler(long graceNs) throws IOException {
        return new TurnScheduler(new TurnRules(1_000_000, graceNs, 0), () -> false, null);
    }

    @AfterEach
    void stop() {
        scheduler.close();
    }

    private static void await(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + LIMIT_NS;
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, what);
            Thread.onSpinWait();
        }
    }

    private static void await(Worker worker, int permit) {
        await("permit " + permit + " instead of " + worker.permit(), () -> worker.permit() == permit);
    }

    @Test
    void shouldGiveTheTurnToWhoeverRings() throws Exception {
        // The grace outlasts the test, so NEXT stays until this thread changes a state, however late.
        try (TurnScheduler patient = scheduler(10 * LIMIT_NS); Worker one = new Worker(patient, "one", GPU);
            Worker other = new Worker(patient, "other", GPU)) {
            await(one, TurnPage.OPEN);
            await(other, TurnPage.WAIT);
            other.says(TurnPage.WANTS);
            await(other, TurnPage.OPEN);
            await(one, TurnPage.WAIT);
            other.says(TurnPage.BUSY);
            one.says(TurnPage.WANTS);
            await(one, TurnPage.NEXT);
            await(other, TurnPage.WAIT); // at the end of its quantum
            other.says(TurnPage.WANTS);
            await(one, TurnPage.TURN);
        }
    }

    @Test
    void shouldLeaveTheLastOneFree() throws Exception {
        try (Worker one = new Worker(scheduler, "one", GPU)) {
            try (Worker other = new Worker(scheduler, "other", GPU)) {
                await(one, TurnPage.OPEN);
                other.says(TurnPage.WANTS);
                await(one, TurnPage.WAIT);
            }
            await(one, TurnPage.FREE);
        }
    }

    @Test
    void shouldGoOnBesideOneThatNeverEnds() throws Exception {
        try (Worker hung = new Worker(scheduler, "hung", GPU); Worker other = new Worker(scheduler, "other", GPU)) {
            await(hung, TurnPage.OPEN);
            hung.says(TurnPage.BUSY);
            other.says(TurnPage.WANTS);
            await(other, TurnPage.TURN);
            assertTrue(TurnPage.isWait(hung.permit()),
                "the hung worker must launch nothing, though it may be the next");
            other.says(TurnPage.BUSY);
            await("the scheduler must charge the hung worker, which occupies the GPU", () -> charged("hung") > 0);
        }
    }

    private long charged(String vgpu) {
        try {
            return scheduler.chargedNs(vgpu).get(LIMIT_NS, TimeUnit.NANOSECONDS);
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void shouldKeepGpusApartUntilASessionHasBoth() throws Exception {
        try (Worker first = new Worker(scheduler, "first", List.of("gpu-0"));
            Worker second = new Worker(scheduler, "second", List.of("gpu-1"))) {
            first.says(TurnPage.BUSY);
            second.says(TurnPage.BUSY);
            assertEquals(0, charged("first"));
            assertEquals(TurnPage.FREE, first.permit());
            assertEquals(TurnPage.FREE, second.permit());
            try (Worker both = new Worker(scheduler, "both", List.of("gpu-1", "gpu-0"))) {
                await("only one of the three must be allowed to launch", () -> Stream.of(first, second, both)
                    .filter(worker -> !TurnPage.isWait(worker.permit())).count() == 1);
            }
            await(first, TurnPage.FREE);
            await(second, TurnPage.FREE);
        }
    }

    @Test
    void shouldNotBeKeptFromOthersByABellThatAlwaysRings() throws Exception {
        try (Worker noisy = new Worker(scheduler, "noisy", GPU); Worker other = new Worker(scheduler, "other", GPU)) {
            await(noisy, TurnPage.OPEN);
            EventFd bell = EventFd.of(noisy.bell);
            Thread ringer = new Thread(() -> {
                try {
                    for (int i = 0; i < 200_000; i++) {
                        bell.signal();
                    }
                } catch (IOException e) {
                    throw new IllegalStateException(e);
                }
            });
            ringer.start();
            other.says(TurnPage.WANTS);
            await(other, TurnPage.OPEN);
            ringer.join();
        }
    }

    /** A replay of what the thread recorded, with states that change at any time, decides the same. */
    @Test
    void shouldRecordWhatAReplayRepeats(@TempDir Path folder) throws Exception {
        Path path = folder.resolve("turns");
        TurnRules rules = new TurnRules(100_000, 200_000, 50_000);
        Random random = new Random(1);
        try (RecordingFile file = RecordingFile.open(path, 100_000_000)) {
            TurnRecorder recorder = new RecordingEncoder(file, rules, System.nanoTime() - 1);
            TurnScheduler recorded = new TurnScheduler(rules, () -> false, recorder);
            List<Worker> workers = new ArrayList<>();
            for (int i = 0; i < 2000; i++) {
                if (workers.size() < 3 || workers.size() < 6 && random.nextInt(100) == 0) {
                    List<String> gpus = random.nextInt(4) == 0 ? List.of("gpu-0", "gpu-1") : List.of("gpu-" + i % 2);
                    workers.add(new Worker(recorded, "vgpu" + i % 4, gpus));
                } else if (random.nextInt(200) == 0) {
                    workers.removeFirst().close();
                } else if (random.nextInt(200) == 0) {
                    recorded.setWeight("vgpu" + i % 4, 1 + random.nextInt(300));
                }
                Worker worker = workers.get(random.nextInt(workers.size()));
                worker.says(TurnPage.isWait(worker.permit()) ? random.nextInt(2) : random.nextInt(3));
                if (random.nextInt(3) == 0) {
                    recorded.chargedNs("vgpu0").get(); // the thread has looked in between
                }
            }
            recorded.close();
            workers.forEach(worker -> worker.page.close());
        }
        Replay replay = Replay.of(path);
        assertNull(replay.difference());
        assertTrue(replay.decisions() > 200, "decisions=" + replay.decisions());
    }

    @Test
    void shouldKeepNothingOfThoseThatHaveGone() throws Exception {
        charged("nobody"); // waits until the thread runs
        long before = descriptors();
        for (int i = 0; i < 50; i++) {
            new Worker(scheduler, "vgpu" + i % 3, GPU).close();
        }
        TurnScheduler.Place unused = scheduler.place("unused", 100, GPU);
        unused.end();
        charged("nobody");
        assertEquals(before, descriptors());
    }

    private static long descriptors() throws IOException {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.map(link -> {
                try {
                    return Files.readSymbolicLink(link).toString();
                } catch (IOException e) {
                    return ""; // the descriptor of the listing
                }
            }).filter(target -> target.contains("hawser-turns") || target.contains("[eventfd]")).count();
        }
    }
}
