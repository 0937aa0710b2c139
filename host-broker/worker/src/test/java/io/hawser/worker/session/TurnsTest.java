package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.turns.TurnPage;
import java.util.ArrayDeque;
import java.util.List;
import java.util.NavigableMap;
import java.util.Queue;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class TurnsTest {
    private static final long CONTEXT = 7;
    private static final long MS = 1_000_000;

    private final TurnPage page = TurnPage.alone();
    private final StreamState stream = new StreamState(CONTEXT, 1);
    private final Queue<Runnable> marks = new ArrayDeque<>(); // actions that run when the GPU has reached their marker
    private long nowNs = 1;
    private int rings;
    private final NavigableMap<Long, Runnable> checks = new TreeMap<>(); // by time
    private int scheduled;
    private final Turns turns = new Turns(new Turns.Surroundings() {
        @Override
        public void mark(StreamState of) {
            long launches = of.watch();
            marks.add(() -> turns().reached(of, launches));
        }

        @Override
        public void checkAgain(Runnable check, long delayMs) {
            checks.put(nowNs + delayMs * MS, check);
            scheduled++;
        }

        @Override
        public void whenReached(StreamState of, Runnable action) {
            marks.add(action);
        }

        @Override
        public void ring() {
            rings++;
        }
    }, () -> nowNs);

    TurnsTest() {
        turns.use(page);
    }

    private Turns turns() {
        return turns;
    }

    private boolean launch() {
        boolean may = turns.mayLaunch();
        if (may) {
            turns.issued(stream);
        }
        return may;
    }

    /** Launches as many as are allowed at once; returns their number. */
    private int launchAll(int limit) {
        int count = 0;
        while (count < limit && launch()) {
            count++;
        }
        return count;
    }

    /** Lets the GPU finish all marked work after some time. */
    private void finish(long ns) {
        nowNs += ns;
        for (Runnable mark = marks.poll(); mark != null; mark = marks.poll()) {
            mark.run();
        }
    }

    @Test
    void shouldLaunchWithoutLimitOrBellWhileAlone() {
        assertEquals(10_000, launchAll(10_000));
        assertEquals(TurnPage.BUSY, page.state());
        turns.markAll();
        finish(MS);
        assertEquals(TurnPage.IDLE, page.state());
        assertEquals(0, rings);
        assertEquals(1, turns.gpuTimeMs());
    }

    @Test
    void shouldHoldAndRingOnceWithoutATurn() {
        page.setPermit(TurnPage.WAIT);
        assertFalse(launch());
        assertFalse(launch());
        assertEquals(TurnPage.WANTS, page.state());
        assertEquals(1, rings);
        nowNs += 5 * MS;
        assertEquals(5, turns.waitedMs());
        page.setPermit(TurnPage.NEXT);
        assertFalse(turns.poll());
        assertFalse(launch());
        page.setPermit(TurnPage.TURN);
        assertTrue(turns.poll());
        assertTrue(launch());
        nowNs += 5 * MS;
        assertEquals(5, turns.waitedMs());
        assertEquals(TurnPage.BUSY, page.state());
    }

    @Test
    void shouldReportEndOfWorkAfterItsTurn() {
        page.setPermit(TurnPage.TURN);
        assertTrue(launch());
        page.setPermit(TurnPage.WAIT);
        assertFalse(launch());
        assertEquals(TurnPage.BUSY, page.state(), "running work cannot be taken back");
        assertEquals(0, rings);
        finish(MS);
        assertEquals(TurnPage.WANTS, page.state());
        assertEquals(1, rings);
    }

    @Test
    void shouldReportEndOfWorkDuringItsTurn() {
        page.setPermit(TurnPage.TURN);
        assertTrue(launch());
        turns.served(true);
        finish(MS);
        assertEquals(TurnPage.IDLE, page.state());
        assertEquals(1, rings);
    }

    @Test
    void shouldSetOneMarkerAtATimeWhileLaunchesCome() {
        page.setPermit(TurnPage.TURN);
        for (int i = 0; i < 8; i++) { // until the window is large
            launchAll(1000);
            finish(10_000);
        }
        for (int i = 0; i < 10; i++) {
            assertTrue(launch());
            turns.served(true);
        }
        assertEquals(1, marks.size());
        finish(10_000); // the rest gets a marker when the first marker is reached
        assertEquals(TurnPage.IDLE, page.state());
    }

    @Test
    void shouldNotRingWhileNoOtherWaits() {
        page.setPermit(TurnPage.OPEN);
        assertTrue(launch());
        turns.markAll();
        finish(MS);
        assertEquals(TurnPage.IDLE, page.state());
        assertEquals(0, rings);
    }

    @Test
    void shouldKeepLittleInFlightOfLongKernels() {
        page.setPermit(TurnPage.OPEN);
        int most = 0;
        for (int i = 0; i < 20; i++) {
            most = Math.max(most, launchAll(1000));
            finish(most * 100L * MS);
        }
        assertTrue(most <= 2, "launches at once: " + most);
    }

    @Test
    void shouldKeepEnoughInFlightOfShortKernels() {
        page.setPermit(TurnPage.OPEN);
        int last = 0;
        for (int i = 0; i < 20; i++) {
            last = launchAll(1000);
            finish(last * 5_000L);
        }
        assertTrue(last >= 64 && last <= Turns.MAX_WINDOW, "launches at once: " + last);
    }

    @Test
    void shouldLaunchMoreWhenRunningWorkStalls() {
        page.setPermit(TurnPage.TURN);
        int first = launchAll(1000);
        assertFalse(launch());
        assertEquals(1, scheduled, "it schedules a check itself");
        int all = first;
        for (int i = 0; i < 10; i++) {
            nowNs += 1000 * MS;
            int more = launchAll(1000);
            assertTrue(more > 0 && more <= first, "a window more each time: " + more);
            all += more;
        }
        assertTrue(all >= first + 10);
    }

    /** A held launch asks again with each record and each end of work. */
    @Test
    void shouldWaitForAStallByOneCheck() {
        page.setPermit(TurnPage.OPEN);
        for (int batch = 0; batch < 50; batch++) {
            launchAll(1000);
            for (int i = 0; i < 100; i++) {
                assertFalse(launch());
            }
            finish(MS);
            runChecks();
            assertTrue(checks.size() <= 2, () -> "checks=" + checks.size());
        }
        assertTrue(scheduled < 10, () -> "scheduled=" + scheduled);
        launchAll(1000);
        assertFalse(launch());
        for (int i = 0; i < 3 && !turns.mayLaunch(); i++) { // it may be early, because work has ended since
            nowNs = Math.max(nowNs, checks.firstKey());
            runChecks();
        }
        assertTrue(launch(), "work that stalls is found by a check");
    }

    private void runChecks() {
        List<Runnable> due = List.copyOf(checks.headMap(nowNs, true).values());
        checks.headMap(nowNs, true).clear();
        due.forEach(Runnable::run);
    }

    @Test
    void shouldMarkAllLaunchesOfContextDone() {
        page.setPermit(TurnPage.OPEN);
        StreamState other = new StreamState(CONTEXT, 2);
        assertTrue(turns.mayLaunch());
        turns.issued(stream);
        assertTrue(turns.mayLaunch());
        turns.issued(other);
        long before = turns.last();
        turns.contextReached(CONTEXT + 1, before);
        assertEquals(TurnPage.BUSY, page.state());
        turns.contextReached(CONTEXT, before);
        assertEquals(TurnPage.IDLE, page.state());
    }

    @Test
    void shouldNotBeBusyAfterFailedLaunch() {
        page.setPermit(TurnPage.TURN);
        assertTrue(turns.mayLaunch());
        turns.issued(null);
        assertEquals(TurnPage.IDLE, page.state());
        assertEquals(1, rings);
    }

    @Test
    void shouldMarkRunningWorkWhenOthersBeginToWait() {
        page.setPermit(TurnPage.OPEN);
        assertTrue(launch());
        assertTrue(marks.size() <= 1);
        page.setPermit(TurnPage.TURN);
        turns.poll();
        finish(MS);
        assertEquals(TurnPage.IDLE, page.state());
        assertEquals(1, rings);
    }
}
