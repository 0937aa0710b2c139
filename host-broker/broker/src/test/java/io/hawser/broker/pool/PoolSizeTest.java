package io.hawser.broker.pool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PoolSizeTest {
    private static final int MOST = 6;

    private static PoolSize grown(int least, int demand) {
        PoolSize size = new PoolSize(least);
        for (int i = 0; i < demand; i++) {
            size.grow(MOST);
        }
        return size;
    }

    @Test
    void shouldGrowWithTheDemandUpToItsLimit() {
        assertEquals(2, grown(2, 0).target());
        assertEquals(5, grown(2, 3).target());
        assertEquals(2 + MOST, grown(2, 100).target());
    }

    @Test
    void shouldNotGrowWithoutAPool() {
        assertEquals(0, grown(0, 5).target());
        PoolSize size = grown(2, 3);
        size.setLeast(0);
        assertEquals(0, size.target());
    }

    @Test
    void shouldGiveUpWorkersThatNoStartHasNeeded() {
        PoolSize size = grown(2, 5);
        size.review(7); // begins an idle time
        assertEquals(7, size.target());
        size.note(3); // a start took a worker, and left 3
        size.note(6);
        size.review(7);
        assertEquals(4, size.target(), "the pool needed 4 of its 7 workers");
        size.review(4);
        assertEquals(2, size.target(), "without a start the pool needs no more than its least size");
    }

    @Test
    void shouldKeepItsSizeWhileStartsNeedAllWorkers() {
        PoolSize size = grown(2, 4);
        for (int i = 0; i < 10; i++) {
            size.note(0);
            size.review(6);
            assertEquals(6, size.target());
        }
    }

    @Test
    void shouldGiveUpWorkersForWhichThereIsNoRoom() {
        PoolSize size = grown(2, 5);
        size.limit(1);
        assertEquals(3, size.target());
        size.limit(-4);
        assertEquals(2, size.target());
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 5, 8, 13})
    void shouldStayWithinItsLimitsWhateverComes(long seed) {
        Random random = new Random(seed);
        PoolSize size = new PoolSize(2);
        for (int i = 0; i < 10_000; i++) {
            switch (random.nextInt(4)) {
                case 0 -> size.grow(random.nextInt(MOST + 1));
                case 1 -> size.note(random.nextInt(9));
                case 2 -> size.review(random.nextInt(9));
                default -> size.limit(random.nextInt(MOST + 3) - 2);
            }
            assertTrue(size.target() >= 2 && size.target() <= 2 + MOST, "target=" + size.target() + " seed=" + seed);
        }
    }
}
