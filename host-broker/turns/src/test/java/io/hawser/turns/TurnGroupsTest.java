package io.hawser.turns;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.turns.TurnPage;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class TurnGroupsTest {
    private static final long MS = 1_000_000;
    private static final TurnRules RULES = new TurnRules(4 * MS, 20 * MS, 0);

    private final TurnGroups groups = new TurnGroups(RULES, () -> false, null);

    private static final class Worker implements Seat {
        private int state = TurnPage.IDLE;
        private int permit = -1;
        private int reads;

        @Override
        public int state() {
            reads++;
            return state;
        }

        @Override
        public void setPermit(int sent) {
            permit = sent;
        }

        boolean mayLaunch() {
            return !TurnPage.isWait(permit);
        }
    }

    private Worker join(String vgpu, int weight, long nowNs, String... gpus) {
        Worker worker = new Worker();
        groups.join(worker, vgpu, weight, List.of(gpus), nowNs);
        return worker;
    }

    @Test
    void shouldKeepGpusApartUntilASessionHasBoth() {
        Worker first = join("first", 100, 1, "gpu-0");
        Worker second = join("second", 100, 1, "gpu-1");
        first.state = TurnPage.BUSY;
        second.state = TurnPage.BUSY;
        groups.poll(2);
        assertEquals(TurnPage.FREE, first.permit);
        assertEquals(TurnPage.FREE, second.permit);
        Worker both = join("both", 100, 3, "gpu-1", "gpu-0");
        groups.poll(4);
        assertEquals(1, Stream.of(first, second, both).filter(Worker::mayLaunch).count());
        groups.leave(both, 5);
        groups.poll(6);
        assertEquals(TurnPage.FREE, first.permit);
        assertEquals(TurnPage.FREE, second.permit);
    }

    @Test
    void shouldJoinGpusThatOtherSessionsConnect() {
        Worker one = join("one", 100, 1, "gpu-0", "gpu-1");
        Worker two = join("two", 100, 1, "gpu-2", "gpu-3");
        Worker last = join("last", 100, 1, "gpu-3");
        join("bridge", 100, 2, "gpu-1", "gpu-2").state = TurnPage.WANTS;
        List<Worker> others = List.of(one, two, last);
        groups.poll(3);
        assertTrue(others.stream().noneMatch(Worker::mayLaunch), "the bridge has the only turn");
    }

    @Test
    void shouldKeepAChangedWeightWhenQueuesJoin() {
        Worker heavy = join("heavy", 100, 1, "gpu-0");
        Worker light = join("light", 100, 1, "gpu-0");
        groups.setWeight("heavy", 300, 2);
        join("other", 100, 3, "gpu-1");
        join("both", 100, 3, "gpu-0", "gpu-1"); // joins the queues
        heavy.state = TurnPage.BUSY;
        light.state = TurnPage.BUSY;
        long heavyNs = 0;
        long lastNs = 4;
        for (long nowNs = 4; nowNs < 4000 * MS; nowNs = groups.look(heavy, nowNs)) {
            heavyNs += heavy.mayLaunch() ? nowNs - lastNs : 0;
            heavy.state = heavy.mayLaunch() ? TurnPage.BUSY : TurnPage.WANTS;
            light.state = light.mayLaunch() ? TurnPage.BUSY : TurnPage.WANTS;
            groups.look(heavy, nowNs);
            lastNs = nowNs;
        }
        assertEquals(0.75, (double) groups.chargedNs("heavy") / (groups.chargedNs("heavy") + groups.chargedNs("light")),
            0.03);
        assertTrue(heavyNs > 0);
    }

    @Test
    void shouldDoNothingInAPollWithoutAChange() {
        Worker one = join("one", 100, 1, "gpu-0");
        Worker other = join("other", 100, 1, "gpu-0");
        one.state = TurnPage.BUSY;
        other.state = TurnPage.WANTS;
        long due = groups.poll(2);
        assertTrue(due > 3 && due < Long.MAX_VALUE, "the turn must end: " + due);
        int reads = one.reads;
        assertEquals(due, groups.poll(3));
        assertEquals(reads + 1, one.reads, "a quiet poll reads each state once");
        other.state = TurnPage.IDLE;
        assertEquals(Long.MAX_VALUE, groups.poll(4), "nobody else wants the GPU");
        assertEquals(TurnPage.OPEN, one.permit);
    }

    @Test
    void shouldNoticeJoinsAndLeavesOfIdleWorkersInAPoll() {
        Worker one = join("one", 100, 1, "gpu-0");
        groups.poll(2);
        assertEquals(TurnPage.FREE, one.permit);
        Worker other = join("other", 100, 3, "gpu-0");
        groups.poll(4);
        assertEquals(TurnPage.OPEN, one.permit);
        groups.leave(other, 5);
        groups.poll(6);
        assertEquals(TurnPage.FREE, one.permit);
    }

    @Test
    void shouldExpectTheEndOfATurnForAMillisecondOnly() {
        Worker one = join("one", 100, 1, "gpu-0");
        Worker other = join("other", 100, 1, "gpu-0");
        one.state = TurnPage.BUSY;
        other.state = TurnPage.WANTS;
        long endNs = 1;
        while (one.mayLaunch() && endNs < 100 * MS) {
            assertFalse(groups.isPassing());
            endNs += 10_000;
            groups.poll(endNs);
        }
        assertTrue(groups.isPassing(), "its work must end soon");
        groups.poll(endNs + MS / 2);
        assertTrue(groups.isPassing());
        groups.poll(endNs + 2 * MS);
        assertFalse(groups.isPassing(), "long work must not keep the thread awake");
    }

    @Test
    void shouldLetAllLaunchAfterAFailureAndGiveTurnsToLaterOnes() {
        Worker one = join("one", 100, 1, "gpu-0");
        Worker other = join("other", 100, 1, "gpu-0");
        one.state = TurnPage.BUSY;
        other.state = TurnPage.WANTS;
        groups.poll(2);
        assertFalse(other.mayLaunch());
        groups.abandon(3);
        assertEquals(List.of(TurnPage.FREE, TurnPage.FREE), List.of(one.permit, other.permit));
        assertEquals(Long.MAX_VALUE, groups.poll(30 * MS));
        assertEquals(List.of(TurnPage.FREE, TurnPage.FREE), List.of(one.permit, other.permit));
        groups.leave(one, 31 * MS);
        groups.leave(other, 31 * MS);
        Worker later = join("later", 100, 32 * MS, "gpu-0");
        join("latest", 100, 32 * MS, "gpu-0").state = TurnPage.WANTS;
        groups.poll(33 * MS);
        assertFalse(later.mayLaunch());
    }
}
