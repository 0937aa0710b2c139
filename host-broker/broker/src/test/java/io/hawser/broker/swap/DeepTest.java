package io.hawser.broker.swap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Sessions that leave wholly, with contexts of 5 bytes, on a GPU with 100 bytes beside all contexts. */
class DeepTest {
    private static final long ROOM = 100;
    private static final long CONTEXT = 5;
    private static final long SECOND = 1_000_000_000;
    private static final SwapRules RULES =
        new SwapRules(10_000, 0, 1, 2 * SECOND, SECOND, 10 * SECOND, 60 * SECOND);
    private static final int STEPS = 100_000;

    private final Map<String, Residency.Totals> totals = new HashMap<>();
    private final Residency residency = new Residency(RULES, () -> ROOM, () -> 0, totals);
    private final List<Session> sessions = new ArrayList<>();
    private long now = 1;

    /** Where a session's process is, and the order that it has not answered yet. */
    private enum Process {
        UP, FREEZING, FROZEN, SINKING, DEEP, RISING
    }

    private final class Session implements Residency.Seat {
        private final String vgpu;
        private final long quota;
        private boolean isIn;
        private boolean mustLeave;
        private boolean mustEnter;
        private boolean isFrozen; // its worker holds all calls
        private boolean hasEnded;
        private Process process = Process.UP;

        Session(String vgpu, long quota) {
            this.vgpu = vgpu;
            this.quota = quota;
            sessions.add(this);
            isIn = residency.join(this, vgpu, quota, 100, () -> 0, now);
        }

        @Override
        public void leave(long limitBytes) {
            assertTrue(isIn && !mustLeave && !hasEnded, vgpu);
            mustLeave = true;
        }

        @Override
        public void enter(long limitBytes) {
            assertTrue(!isIn && !hasEnded, vgpu);
            assertTrue(process == Process.UP || process == Process.FROZEN, () -> "first its process: " + process);
            mustEnter = limitBytes == Long.MAX_VALUE;
            isFrozen = false;
            process = Process.UP;
        }

        @Override
        public void freeze() {
            assertTrue(!isIn && !mustEnter && process == Process.UP && !isFrozen && !hasEnded, process::toString);
            process = Process.FREEZING;
        }

        @Override
        public void thaw() {
            assertTrue(isFrozen && process == Process.FROZEN && !hasEnded, process::toString);
            isFrozen = false;
            process = Process.UP;
        }

        @Override
        public void sink() {
            assertTrue(!isIn && isFrozen && process == Process.FROZEN && !hasEnded, process::toString);
            process = Process.SINKING;
        }

        @Override
        public void rise() {
            assertTrue(!isIn && process == Process.DEEP && !hasEnded, process::toString);
            process = Process.RISING;
        }

        /** Its worker answers the order to hold its calls. */
        Session freezes(String stays) {
            assertEquals(Process.FREEZING, process);
            isFrozen = stays.isEmpty();
            process = isFrozen ? Process.FROZEN : Process.UP;
            residency.frozen(this, stays, now);
            residency.step(now);
            return this;
        }

        Session sinks(String problem) {
            assertEquals(Process.SINKING, process);
            process = problem.isEmpty() ? Process.DEEP : Process.FROZEN;
            residency.sunk(this, problem, CONTEXT, now);
            residency.step(now);
            return this;
        }

        Session rises() {
            assertEquals(Process.RISING, process);
            process = Process.FROZEN;
            residency.risen(this, now);
            residency.step(now);
            return this;
        }

        Session moves() {
            if (mustLeave) {
                mustLeave = false;
                isIn = false;
                residency.left(this, quota, "", now);
            }
            residency.step(now);
            if (mustEnter) {
                mustEnter = false;
                isIn = true;
                residency.entered(this, quota, true);
            }
            return this;
        }

        /** Answers whatever it was told. */
        void answers() {
            switch (process) {
                case FREEZING -> freezes("");
                case SINKING -> sinks("");
                case RISING -> rises();
                default -> moves();
            }
        }

        void wants() {
            residency.want(this, now);
            residency.step(now);
        }

        void ends() {
            hasEnded = true;
            sessions.remove(this);
            residency.remove(this, now);
            residency.step(now);
        }
    }

    private void pass(double seconds) {
        now += (long) (seconds * SECOND);
        residency.sink(now);
        residency.step(now);
    }

    /** A session that is out, and another one in its place. */
    private Session out(String vgpu) {
        Session session = new Session(vgpu, 60);
        pass(3);
        Session other = new Session("other", 60);
        other.wants();
        session.moves();
        other.moves();
        assertTrue(other.isIn && !session.isIn);
        return session;
    }

    private Session deep() {
        Session session = out("deep");
        pass(61);
        session.freezes("").sinks("");
        assertEquals(1, residency.deepSessions("deep"));
        return session;
    }

    @Test
    void shouldSinkOnlyWhatIsOutAndIdleForLong() {
        Session session = out("deep");
        pass(56);
        assertEquals(Process.UP, session.process, "idle for 59 s");
        residency.active(session, now);
        pass(59);
        assertEquals(Process.UP, session.process);
        pass(2);
        assertEquals(Process.FREEZING, session.process);
        assertEquals(Process.UP, sessions.get(1).process, "its memory is on the GPU");
        session.freezes("");
        assertEquals(Process.SINKING, session.process);
        session.sinks("");
        assertEquals(1, residency.deepSessions("deep"));
        assertEquals(1, totals.get("deep").deepSwaps());
    }

    @Test
    void shouldNeverSinkWithoutATime() {
        Residency shallow = new Residency(new SwapRules(10_000, 0, 1, 0, SECOND, SECOND, 0), () -> 10, () -> 0, totals);
        ShallowSeat seat = new ShallowSeat() {
            @Override
            public void leave(long limitBytes) {
                throw new AssertionError();
            }

            @Override
            public void enter(long limitBytes) {
                throw new AssertionError();
            }
        };
        assertFalse(shallow.join(seat, "v", 60, 100, () -> 0, 1));
        shallow.sink(Long.MAX_VALUE);
    }

    @Test
    void shouldRiseBeforeItsMemoryComes() {
        Session session = deep();
        Session other = sessions.get(1);
        session.wants();
        assertEquals(Process.DEEP, session.process, "the other one has not left yet");
        other.moves();
        assertEquals(Process.RISING, session.process);
        assertFalse(session.mustEnter);
        session.rises();
        assertTrue(session.mustEnter);
        assertTrue(session.moves().isIn);
        assertEquals(0, residency.deepSessions("deep"));
    }

    @Test
    void shouldNotSinkWhatHasBegunToWait() {
        Session session = out("deep");
        pass(61);
        session.wants(); // its message crosses the order
        session.freezes("its guest waits for it");
        assertEquals(Process.UP, session.process);
        sessions.get(1).moves();
        assertTrue(session.mustEnter);
    }

    @Test
    void shouldLetBeWhatBeginsToWaitAfterItsAnswer() {
        Session session = out("deep");
        Session sibling = new Session("deep", 60);
        pass(61);
        sibling.wants();
        session.freezes("");
        assertEquals(Process.UP, session.process, "its vGPU waits");
        assertFalse(session.isFrozen);
    }

    @Test
    void shouldComeBackFromTheMiddleOfItsMove() {
        Session session = out("deep");
        pass(61);
        session.freezes("").wants();
        sessions.get(1).moves();
        assertEquals(Process.SINKING, session.process, "a move cannot be stopped");
        assertFalse(session.mustEnter);
        session.sinks("");
        assertEquals(Process.RISING, session.process);
        assertTrue(session.rises().moves().isIn);
    }

    @Test
    void shouldComeBackFromAMoveThatFails() {
        Session session = out("deep");
        pass(61);
        session.freezes("").wants();
        sessions.get(1).moves();
        assertTrue(session.sinks("CUresult=801").moves().isIn);
        assertEquals("CUresult=801", residency.deepStays("deep"));
    }

    @Test
    void shouldTryOnlyOnceWhatTheDriverRefuses() {
        Session session = out("deep");
        pass(61);
        session.freezes("").sinks("CUresult=801");
        assertEquals(Process.UP, session.process);
        assertFalse(session.isFrozen);
        assertEquals("CUresult=801", residency.deepStays("deep"));
        pass(1000);
        assertEquals(Process.UP, session.process);
        assertEquals(0, totals.get("deep").deepSwaps());
    }

    @Test
    void shouldTryAgainWhatWasBusy() {
        Session session = out("deep");
        pass(61);
        session.freezes("its calls have not ended");
        pass(59);
        assertEquals(Process.UP, session.process);
        pass(2);
        assertEquals(Process.FREEZING, session.process);
        assertEquals("", residency.deepStays("deep"));
    }

    @Test
    void shouldEndWhatDoesNotAnswer() {
        Session session = out("deep");
        pass(61);
        pass(29);
        assertEquals(List.of(), residency.stuck(now));
        pass(2);
        assertEquals(List.of(session), residency.stuck(now));
    }

    /** The helper has its own limit, and ways back wait for each other. */
    @Test
    void shouldLeaveTheTimeOfMovesToTheHelper() {
        Session session = deep();
        session.wants();
        sessions.get(1).moves().ends();
        pass(31);
        assertEquals(List.of(), residency.stuck(now));
        session.rises();
        pass(29);
        assertEquals(List.of(), residency.stuck(now));
        pass(2);
        assertEquals(List.of(session), residency.stuck(now));
    }

    @Test
    void shouldForgetWhatEndsInAnyPhase() {
        for (int phase = 0; phase < 5; phase++) {
            Session session = out("deep");
            pass(61);
            for (int i = 0; i < Math.min(phase, 2); i++) {
                session.answers();
            }
            if (phase >= 3) {
                session.answers();
                session.wants();
                sessions.get(1).moves();
                assertEquals(Process.RISING, session.process);
            }
            session.ends();
            residency.frozen(session, "", now); // late answers
            residency.sunk(session, "", CONTEXT, now);
            residency.risen(session, now);
            assertEquals(0, residency.deepSessions("deep"));
            assertEquals(0, residency.outBytes("deep"));
            sessions.getFirst().ends();
            assertTrue(new Session("whole", ROOM).isIn, "all room is free");
            assertFalse(new Session("more", 1).isIn, "and not more");
            List.copyOf(sessions).forEach(Session::ends);
        }
    }

    @Test
    void shouldGiveTheContextsMemoryToOthersAndTakeItBack() {
        deep();
        Session small = new Session("small", ROOM - 60 + CONTEXT);
        assertTrue(small.isIn, "in the room of the context");
        sessions.getFirst().wants();
        pass(3);
        assertTrue(sessions.get(1).mustLeave);
        sessions.get(1).moves();
        assertEquals(Process.DEEP, sessions.getFirst().process, "60 + 45 + its context need 105 of 100");
        assertTrue(small.mustLeave);
        small.moves();
        assertEquals(Process.RISING, sessions.getFirst().process);
    }

    /** Any order of events keeps memory and contexts within the GPU, and lets everybody in at last. */
    @Test
    void shouldHoldTheRoomWhateverHappens() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        Map<String, Long> quotas = new HashMap<>();
        long deepest = 0;
        for (int step = 0; step < STEPS; step++) {
            String context = "seed=" + seed + " step=" + step;
            now += random.nextLong(20 * SECOND);
            residency.sink(now);
            Session any = sessions.isEmpty() ? null : sessions.get(random.nextInt(sessions.size()));
            int event = random.nextInt(8);
            if (any == null || event == 0 && sessions.size() < 12) {
                String vgpu = "v" + random.nextInt(6);
                new Session(vgpu, quotas.computeIfAbsent(vgpu, name -> 1 + random.nextLong(ROOM)));
            } else if (event == 1 && any.process != Process.DEEP) { // its end frees a context, which this room excludes
                any.ends();
            } else if (event == 2) {
                any.wants();
            } else if (event == 3 && any.process == Process.FREEZING) {
                any.freezes("busy");
            } else if (event == 4 && any.process == Process.SINKING && random.nextInt(20) == 0) {
                any.sinks("refused");
            } else if (event == 5) {
                residency.active(any, now);
            } else {
                any.answers();
            }
            residency.step(now);
            long given = sessions.stream().filter(session -> session.process == Process.DEEP).count() * CONTEXT;
            long held = sessions.stream().filter(session -> session.isIn).map(session -> session.vgpu).distinct()
                .mapToLong(quotas::get).sum();
            assertTrue(held <= ROOM + given, () -> context + " held=" + held + " given=" + given);
            deepest = Math.max(deepest, given);
        }
        assertTrue(deepest > 2 * CONTEXT, "several were deep at a time: seed=" + seed);
        for (Session session : List.copyOf(sessions)) {
            session.wants();
            for (int i = 0; i < 200 && !session.isIn; i++) {
                pass(11);
                List.copyOf(sessions).forEach(Session::answers);
            }
            assertTrue(session.isIn, () -> "seed=" + seed + " vgpu=" + session.vgpu + " process=" + session.process);
        }
    }
}
