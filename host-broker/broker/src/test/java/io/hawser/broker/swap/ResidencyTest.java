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

/** The vGPUs of one GPU of 100 bytes, in simulated time. */
class ResidencyTest {
    private static final long ROOM = 100;
    private static final long SECOND = 1_000_000_000;
    private static final SwapRules RULES = new SwapRules(10_000, 0, 1, 2 * SECOND, SECOND, 10 * SECOND, 0);
    private static final int STEPS = 100_000;

    private final Map<String, Residency.Totals> totals = new HashMap<>();
    private final Residency residency = new Residency(RULES, () -> ROOM, () -> 0, totals);
    private long now = 1;

    /** A session that answers at the call of {@link #answer}. */
    private final class Session extends ShallowSeat {
        private final String vgpu;
        private final long quota;
        private boolean isIn;
        private boolean mustLeave;
        private boolean mustEnter;
        private boolean hasEnded;

        Session(String vgpu, long quota, int share) {
            this.vgpu = vgpu;
            this.quota = quota;
            isIn = residency.join(this, vgpu, quota, share, () -> 0, now);
        }

        Session(String vgpu, long quota) {
            this(vgpu, quota, 100);
        }

        @Override
        public void leave(long limitBytes) {
            assertTrue(isIn && !mustLeave && !hasEnded, vgpu);
            mustLeave = true;
        }

        @Override
        public void enter(long limitBytes) {
            assertTrue(!isIn && !mustEnter && !hasEnded, vgpu);
            mustEnter = limitBytes == Long.MAX_VALUE; // else only a part of its memory may come
        }

        /** Answers what it was told. */
        Session answer() {
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

        void stay(String reason) {
            mustLeave = false;
            residency.left(this, 0, reason, now);
        }

        void end() {
            hasEnded = true;
            residency.remove(this, now);
            residency.step(now);
        }

        void want() {
            residency.want(this, now);
            residency.step(now);
        }
    }

    private void pass(double seconds) {
        now += (long) (seconds * SECOND);
        residency.step(now);
    }

    /** The session is busy for so many halves of a second. */
    private void work(Session session, int halves) {
        for (int i = 0; i < halves; i++) {
            residency.active(session, now);
            pass(0.5);
        }
    }

    @Test
    void shouldLetInWhatFits() {
        assertTrue(new Session("a", 60).isIn);
        assertFalse(new Session("b", 60).isIn);
        assertTrue(new Session("c", 40).isIn);
        assertTrue(new Session("a", 60).isIn, "a second session of a vGPU that is in");
    }

    @Test
    void shouldSendTheLongestIdleAway() {
        Session old = new Session("old", 50);
        Session idle = new Session("idle", 50);
        pass(3);
        residency.active(old, now);
        Session comer = new Session("comer", 50);
        comer.want();
        assertTrue(idle.mustLeave);
        assertFalse(old.mustLeave);
        idle.answer();
        assertTrue(comer.mustEnter);
        comer.answer();
        assertTrue(comer.isIn);
        assertEquals(1, totals.get("idle").swaps());
        assertEquals(50, residency.outBytes("idle"));
        assertFalse(residency.isIn("idle"));
    }

    @Test
    void shouldLetThoseStayThatHaveJustCome() {
        Session first = new Session("first", 60);
        Session second = new Session("second", 60);
        second.want();
        assertFalse(first.mustLeave);
        pass(1.9);
        assertFalse(first.mustLeave);
        pass(0.2);
        assertTrue(first.mustLeave);
    }

    @Test
    void shouldGiveBusyVgpusTurnsByTheirShares() {
        Session large = new Session("large", 60, 90);
        Session small = new Session("small", 60, 30);
        small.want();
        work(large, 29);
        assertFalse(large.mustLeave, "a turn of 10 s, and a half more for its share");
        work(large, 2);
        assertTrue(large.mustLeave);
        large.answer();
        small.answer();
        large.want();
        work(small, 9);
        assertFalse(small.mustLeave, "half of a turn");
        work(small, 2);
        assertTrue(small.mustLeave);
    }

    @Test
    void shouldCountTheTimeThatAVgpuWaits() {
        Session first = new Session("first", 60);
        Session second = new Session("second", 60);
        second.want();
        pass(5);
        assertEquals(5 * SECOND, residency.waitingNs("second", now));
        first.answer();
        assertEquals(5 * SECOND, totals.get("second").waitedNs());
        assertEquals(0, residency.waitingNs("second", now));
    }

    @Test
    void shouldAskAnotherWhenOneCannotLeave() {
        Session tied = new Session("tied", 50);
        pass(1);
        Session free = new Session("free", 50);
        pass(3);
        Session comer = new Session("comer", 50);
        comer.want();
        assertTrue(tied.mustLeave);
        tied.stay("it has arrays");
        residency.step(now);
        assertEquals("it has arrays", residency.stays("tied"));
        assertTrue(free.mustLeave);
        free.answer();
        comer.answer();
        assertTrue(comer.isIn && tied.isIn);
    }

    @Test
    void shouldMoveAllSessionsOfAVgpuTogether() {
        Session one = new Session("both", 60);
        Session other = new Session("both", 60);
        pass(3);
        Session comer = new Session("comer", 60);
        comer.want();
        assertTrue(one.mustLeave && other.mustLeave);
        one.answer();
        assertFalse(comer.mustEnter, "the other session still has its memory");
        other.stay("its work runs");
        assertTrue(one.mustEnter, "a vGPU is in or out as a whole");
        one.answer();
        assertTrue(one.isIn && residency.isIn("both"));
        pass(2.1);
        one.answer();
        other.answer();
        assertTrue(comer.mustEnter);
    }

    @Test
    void shouldWaitForNobodyWhoHasLeftUnasked() {
        Session first = new Session("first", 60);
        residency.left(first, 60, "", now);
        pass(3);
        Session second = new Session("second", 60);
        second.want();
        residency.step(now);
        assertTrue(second.mustEnter);
        assertFalse(first.mustLeave);
    }

    @Test
    void shouldLetNobodyOvertake() {
        Session first = new Session("first", 60);
        pass(0.1);
        Session large = new Session("large", 90);
        large.want();
        Session small = new Session("small", 40);
        assertFalse(small.isIn, "it would fit, but another one waits");
        small.want();
        pass(3);
        first.answer();
        assertTrue(large.mustEnter);
        assertFalse(small.mustEnter);
    }

    @Test
    void shouldMakeRoomByAnEnd() {
        Session first = new Session("first", 60);
        Session second = new Session("second", 60);
        second.want();
        first.end();
        assertTrue(second.mustEnter);
        assertEquals(0, residency.outBytes());
    }

    /** Any order of events keeps the memory within the GPU, and lets everybody in at last. */
    @Test
    void shouldHoldTheRoomWhateverHappens() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        List<Session> sessions = new ArrayList<>();
        Map<String, Long> quotas = new HashMap<>();
        for (int step = 0; step < STEPS; step++) {
            String context = "seed=" + seed + " step=" + step;
            now += random.nextLong(SECOND);
            Session any = sessions.isEmpty() ? null : sessions.get(random.nextInt(sessions.size()));
            int event = random.nextInt(8);
            if (any == null || event == 0 && sessions.size() < 12) {
                String vgpu = "v" + random.nextInt(6);
                sessions.add(new Session(vgpu, quotas.computeIfAbsent(vgpu, name -> 1 + random.nextLong(ROOM))));
            } else if (event == 1) {
                any.end();
                sessions.remove(any);
            } else if (event == 2) {
                any.want();
            } else if (event == 3 && any.mustLeave && random.nextBoolean()) {
                any.stay("busy");
            } else if (event == 4) {
                residency.active(any, now);
            } else if (event == 5) {
                any.isIn = false;
                any.mustLeave = false;
                any.mustEnter = false;
                residency.left(any, random.nextLong(ROOM), "", now); // a hostile worker answers unasked
            } else {
                any.answer();
            }
            residency.step(now);
            long held = sessions.stream().filter(session -> session.isIn).map(session -> session.vgpu).distinct()
                .mapToLong(quotas::get).sum();
            assertTrue(held <= ROOM, () -> context + " held=" + held);
        }
        for (Session session : sessions) {
            session.answer();
            session.want();
            for (int i = 0; i < 100 && !session.isIn; i++) {
                pass(11);
                sessions.forEach(Session::answer);
            }
            assertTrue(session.isIn, () -> "seed=" + seed + " vgpu=" + session.vgpu);
        }
    }
}
