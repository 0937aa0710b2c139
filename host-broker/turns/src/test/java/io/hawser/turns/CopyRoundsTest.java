package io.hawser.turns;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.turns.TurnPage;
import java.util.List;
import org.junit.jupiter.api.Test;

class CopyRoundsTest {
    private static final long MS = 1_000_000;
    private static final long TICK_NS = CopyRounds.TICK_NS;
    private static final TurnRules RULES = new TurnRules(4 * MS, 20 * MS, 0);
    /** Units that a worker without a limit copies in a tick. */
    private static final int MUCH = (int) (1L << 30 >> 16);

    private boolean leavesEqual = true;
    private final TurnGroups groups = new TurnGroups(RULES, () -> leavesEqual, null);
    private long nowNs = 1;

    private static final class Worker implements Seat {
        private int copied;
        private int copies = Integer.MIN_VALUE;

        @Override
        public int state() {
            return TurnPage.IDLE;
        }

        @Override
        public void setPermit(int sent) {}

        @Override
        public int copied() {
            return copied;
        }

        @Override
        public void setCopies(int sent) {
            copies = sent;
        }
    }

    private Worker join(String vgpu, int weight) {
        Worker worker = new Worker();
        groups.join(worker, vgpu, weight, List.of("gpu-0"), nowNs);
        return worker;
    }

    private long pollAfter(long ns) {
        nowNs += ns;
        return groups.pollCopies(nowNs);
    }

    /** Ticks during which these workers copy as much as they can. */
    private void copy(int ticks, Worker... workers) {
        for (int i = 0; i < ticks; i++) {
            for (Worker worker : workers) {
                worker.copied += worker.copies > 0 ? 10 * worker.copies / 64 : MUCH;
            }
            pollAfter(TICK_NS);
        }
    }

    @Test
    void shouldGiveRoundsAsTheWeights() {
        Worker small = join("small", 10);
        Worker middle = join("middle", 20);
        Worker large = join("large", 40);
        assertEquals(Long.MAX_VALUE, pollAfter(1));
        assertEquals(TurnPage.REPORTED, small.copies, "the first copy rings");
        copy(10, small, middle, large);
        assertEquals(CopyRounds.LARGEST_KIB, large.copies);
        assertEquals(CopyRounds.LARGEST_KIB / 2, middle.copies);
        assertEquals(CopyRounds.LARGEST_KIB / 4, small.copies);
    }

    @Test
    void shouldNotLimitAVgpuThatCopiesAlone() {
        Worker small = join("small", 10);
        Worker large = join("large", 40);
        pollAfter(1);
        copy(5, small);
        assertEquals(TurnPage.COUNTED, small.copies);
        copy(5, small, large);
        assertTrue(small.copies > 0, "both copy: " + small.copies);
        copy(2, small);
        assertEquals(TurnPage.COUNTED, small.copies, "the large one has stopped");
    }

    @Test
    void shouldNotLimitOthersForAVgpuThatCopiesLittle() {
        Worker small = join("small", 10);
        Worker large = join("large", 1000);
        pollAfter(1);
        for (int i = 0; i < 10; i++) {
            large.copied += 16; // 1 MiB in a tick
            copy(1, small);
            assertEquals(TurnPage.COUNTED, small.copies);
        }
    }

    @Test
    void shouldSleepWhileNobodyCopies() {
        Worker small = join("small", 10);
        Worker large = join("large", 40);
        assertEquals(Long.MAX_VALUE, pollAfter(1));
        small.copied++;
        assertEquals(nowNs + 1 + TICK_NS, pollAfter(1), "somebody copies");
        assertEquals(TurnPage.COUNTED, small.copies);
        pollAfter(TICK_NS);
        assertEquals(Long.MAX_VALUE, pollAfter(CopyRounds.QUIET_NS + TICK_NS));
        assertEquals(TurnPage.REPORTED, small.copies);
        assertEquals(TurnPage.REPORTED, large.copies);
    }

    @Test
    void shouldLeaveEqualSharesToTheDriverWhereItMay() {
        Worker one = join("one", 10);
        Worker two = join("two", 10);
        pollAfter(1);
        assertEquals(TurnPage.UNCOUNTED, one.copies);
        leavesEqual = false;
        pollAfter(1);
        copy(5, one, two);
        assertEquals(CopyRounds.LARGEST_KIB, one.copies);
        leavesEqual = true;
        groups.setWeight("two", 30, nowNs);
        copy(5, one, two);
        assertEquals(CopyRounds.LARGEST_KIB / 3, one.copies);
    }

    @Test
    void shouldDivideAVgpusRoundAmongItsSessions() {
        Worker[] sessions = {join("large", 40), join("large", 40), join("large", 40)};
        assertEquals(Long.MAX_VALUE, pollAfter(1));
        assertEquals(TurnPage.UNCOUNTED, sessions[0].copies, "there is no other vGPU");
        Worker small = join("small", 10);
        pollAfter(1);
        copy(5, sessions[0], sessions[1], small);
        assertEquals(CopyRounds.LARGEST_KIB / 2, sessions[0].copies);
        assertEquals(CopyRounds.LARGEST_KIB / 2, sessions[2].copies, "it may begin at any time");
        assertEquals(CopyRounds.LARGEST_KIB / 4, small.copies);
    }

    @Test
    void shouldKeepALeastRound() {
        Worker small = join("small", 1);
        Worker large = join("large", 10_000);
        pollAfter(1);
        copy(5, small, large);
        assertEquals(CopyRounds.LEAST_KIB, small.copies);
    }

    @Test
    void shouldEndLimitsWhenTheOthersLeaveOrAGroupChanges() {
        Worker small = join("small", 10);
        Worker large = join("large", 40);
        pollAfter(1);
        copy(5, small, large);
        assertTrue(small.copies > 0);
        Worker both = new Worker();
        groups.join(both, "both", 10, List.of("gpu-0", "gpu-1"), nowNs);
        groups.leave(both, nowNs); // makes new queues
        groups.leave(large, nowNs);
        pollAfter(1);
        assertEquals(TurnPage.UNCOUNTED, small.copies);
    }
}
