package io.hawser.shm.ring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.ThreadTime;
import org.junit.jupiter.api.Test;

class PatienceTest {
    private static final long LIMIT_NS = 20_000_000;

    @Test
    void shouldSpinLessWhereOthersNeedTheProcessor() {
        long budgetNs = LIMIT_NS;
        for (int i = 0; i < 20; i++) {
            budgetNs = Patience.learn(budgetNs, LIMIT_NS, false, true, 0);
        }
        assertEquals(50_000, budgetNs); // as short as any spin, but not zero: a fast device is still noticed
        for (int i = 0; i < 60; i++) {
            budgetNs = Patience.learn(budgetNs, LIMIT_NS, true, false, 0);
        }
        assertEquals(LIMIT_NS, budgetNs);
    }

    @Test
    void shouldTryNowAndThenWhetherTheOthersHaveGone() {
        assertEquals(50_000, Patience.learn(50_000, LIMIT_NS, false, false, 15));
        assertEquals(LIMIT_NS, Patience.learn(50_000, LIMIT_NS, false, false, 16));
    }

    @Test
    void shouldEndEveryWait() {
        Patience patience = new Patience(1_000_000);
        for (int i = 0; i < 50; i++) {
            patience.begin();
            boolean goesOn;
            do {
                goesOn = patience.once();
            } while (goesOn);
            patience.end(false);
        }
        assertFalse(Thread.currentThread().isInterrupted());
    }

    @Test
    void shouldCountOnlyWhatThisThreadRan() throws Exception {
        Thread other = Thread.ofPlatform().unstarted(() -> {
            while (ThreadTime.ranNs() < 50_000_000) {
                Thread.onSpinWait();
            }
        });
        long before = ThreadTime.ranNs(); // excludes creating the thread, which takes long on a slow machine
        other.start();
        other.join();
        long ran = ThreadTime.ranNs() - before;
        assertTrue(ran < 50_000_000, "the other thread's time is counted: ranNs=" + ran);
    }
}
