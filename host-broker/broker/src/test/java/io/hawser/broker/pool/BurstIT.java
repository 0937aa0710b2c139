package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.door.TestGuest;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Many sessions at once. The test makes fake workers ready one by one and measures no time. */
class BurstIT {
    private static final int AT_ONCE = 3;
    private static final int BURST = 32;

    @TempDir
    Path stateDir;
    @TempDir
    Path permits;
    private final Set<Long> before = children(); // of earlier tests in this JVM, no workers
    private final List<TestGuest> guests = new ArrayList<>();
    private TestBroker broker;
    private int given;

    @AfterEach
    void stop() throws IOException {
        for (TestGuest guest : guests) {
            guest.close();
        }
        broker.close();
    }

    private static Set<Long> children() {
        return ProcessHandle.current().children().map(ProcessHandle::pid).collect(Collectors.toSet());
    }

    private Set<Long> workers() {
        Set<Long> workers = children();
        workers.removeAll(before);
        return workers;
    }

    /** Starts a broker with a full pool. */
    private void start(int poolSize, Map<String, String> settings) throws IOException {
        Map<String, String> all = new HashMap<>(Map.of("hawser.worker.pool-size", Integer.toString(poolSize),
            "hawser.worker.start-timeout", "1h", "hawser.pool.max-starting", Integer.toString(AT_ONCE),
            "hawser.pool.max-size", "0", "hawser.listen.max-per-peer", "100"));
        all.putAll(settings);
        broker = TestBroker.start(stateDir, FakeWorker.GATED + permits, all);
        permit(poolSize);
        TestBroker.await("a full pool", () -> state().ready() == poolSize);
    }

    private PoolState state() {
        return broker.broker().pools().state();
    }

    private int waiting() {
        return state().waiting().getOrDefault("default", 0);
    }

    /** Lets workers become ready. */
    private void permit(int workers) throws IOException {
        for (int i = 0; i < workers; i++) {
            Files.createFile(permits.resolve("permit-" + given++));
        }
    }

    private TestGuest guest() throws IOException {
        TestGuest guest = new TestGuest(broker.broker());
        guests.add(guest);
        guest.handshake("default", TestGuest.secret(stateDir));
        return guest;
    }

    /** Adds guests that wait in this order. */
    private void waitingGuests(int count) throws IOException {
        int already = waiting();
        for (int i = 1; i <= count; i++) {
            guest();
            int now = already + i;
            TestBroker.await("a waiting start", () -> waiting() == now);
        }
    }

    private List<Long> running() {
        return broker.broker().sessions().list().stream().filter(s -> s.state() == SessionState.RUNNING)
            .map(SessionView::id).sorted().toList();
    }

    @Test
    void shouldServeABurstInOrderWithFewStartsAtATime() throws Exception {
        start(2, Map.of());
        for (int i = 1; i <= 2; i++) {
            assertEquals(RecordLayout.CONTROL_WELCOME, guest().receive().opcode());
        }
        waitingGuests(BURST - 2);
        for (int served = 2; served < BURST; served++) {
            int left = BURST - served;
            TestBroker.await("the starts", () -> state().starting() == Math.min(AT_ONCE, left));
            permit(1);
            int next = served + 1;
            TestBroker.await("the next session", () -> running().size() == next);
            assertEquals(LongStream.rangeClosed(1, next).boxed().toList(), running());
            assertTrue(state().starting() <= AT_ONCE, () -> state().toString());
        }
        for (TestGuest guest : guests.subList(2, BURST)) {
            assertEquals(RecordLayout.CONTROL_WELCOME, guest.receive().opcode());
        }
    }

    @Test
    void shouldRefillSlowlyWhileSessionsRun() throws Exception {
        int refill = StartRules.of(Runtime.getRuntime().availableProcessors(), 0, 1).refill();
        int size = refill + 3;
        start(size, Map.of("hawser.pool.max-starting", Integer.toString(size)));
        for (int i = 0; i < size; i++) {
            guest().receive();
        }
        for (int ready = 0; ready < size; ready++) {
            int most = Math.min(refill, size - ready);
            TestBroker.await("the refill", () -> state().starting() == most);
            assertEquals(size + ready + most, workers().size());
            permit(1);
            int next = ready + 1;
            TestBroker.await("one more ready worker", () -> state().ready() == next);
        }
        assertEquals(0, state().starting());
    }

    @Test
    void shouldStartNoWorkerAheadWhileGuestsWait() throws Exception {
        start(2, Map.of());
        guest().receive();
        guest().receive();
        TestBroker.await("the refill", () -> state().starting() > 0);
        waitingGuests(2);
        TestBroker.await("the starts", () -> state().starting() == 2);
        assertEquals(4, workers().size(), "a worker for each session and each waiting guest");
    }

    @Test
    void shouldGrowWithTheDemandAndShrinkAgain() throws Exception {
        start(1, Map.of("hawser.pool.max-size", "3", "hawser.pool.idle-time", "50ms"));
        guest().receive();
        waitingGuests(6);
        assertEquals(3, state().size(), "the pool must grow up to its limit and no further");
        assertEquals(2, state().grown());
        permit(6);
        for (TestGuest guest : guests.subList(1, 7)) {
            guest.receive();
        }
        permit(4);
        for (TestGuest guest : guests) {
            guest.close();
        }
        TestBroker.await("the least size", () -> state().size() == 1 && state().ready() == 1);
        assertEquals(0, state().grown());
        TestBroker.await("the end of the other workers", () -> workers().size() == 1);
    }

    @Test
    void shouldReplaceAWorkerThatDiesWhileItsGuestWaits() throws Exception {
        start(1, Map.of("hawser.worker.min-back-off", "1h", "hawser.worker.max-back-off", "1h"));
        Set<Long> pool = workers();
        guest().receive();
        TestBroker.await("a starting worker", () -> state().starting() == 1);
        waitingGuests(1);
        Set<Long> starting = workers();
        starting.removeAll(pool);
        starting.forEach(pid -> assertTrue(ProcessHandle.of(pid).orElseThrow().destroyForcibly()));
        TestBroker.await("another starting worker", () -> state().failures() == 1 && state().starting() == 1);
        permit(1);
        assertEquals(RecordLayout.CONTROL_WELCOME, guests.getLast().receive().opcode());
        assertEquals(0, state().failures());
    }

    @Test
    void shouldBoundTheStartsOfGuestsThatLeave() throws Exception {
        start(1, Map.of("hawser.pool.max-size", "2"));
        guest().receive();
        for (int i = 0; i < 20; i++) {
            waitingGuests(4);
            assertTrue(workers().size() <= 1 + AT_ONCE, () -> "workers=" + workers() + state());
            assertTrue(state().size() <= 2, () -> state().toString());
            for (TestGuest guest : guests.subList(1, guests.size())) {
                guest.close();
            }
            TestBroker.await("an empty line", () -> waiting() == 0);
        }
        assertFalse(state().starting() > AT_ONCE);
        permit(2 * AT_ONCE);
        TestBroker.await("the pool", () -> state().ready() == 2 && state().starting() == 0);
        TestBroker.await("the end of the other workers", () -> workers().size() == 3);
    }
}
