package io.hawser.shm.ring;

import io.hawser.shm.os.ThreadTime;

/**
 * How long a thread that waits for a device rather spins on than sleeps; {@code hws_patience_t} in C. It learns whether
 * there are processors to spare: a thread that spins and has been made to stand aside meanwhile takes a processor that
 * others need, so the time is halved; one that got what it waited for lengthens it. Waits that are all longer would
 * never learn that the others have gone, so now and then one spins as long as it may. One thread at a time.
 */
public final class Patience {
    /** Longer than most waits of a program that is worth it; a backend may be content with less. */
    private static final long LIMIT_NS = 20_000_000;
    private static final long SHORTEST_NS = 50_000;
    private static final long CROWD_LOOK_NS = 100_000; // between two looks at the thread's own time
    /** So much less than the time that has passed: the scheduler has let others run. */
    private static final long CROWDED_NS = 200_000;
    private static final int MISSES_A_TRY = 16;
    private static final int TURNS_A_CLOCK = 8;

    private final long limitNs;
    private long budgetNs;
    private int misses;
    private int turns;
    private long beganNs;
    private long beganRanNs;
    private long lookedNs;
    private boolean crowded;

    /** With the usual limit. */
    public Patience() {
        this(LIMIT_NS);
    }

    Patience(long limitNs) {
        this.limitNs = limitNs;
        budgetNs = limitNs;
    }

    /** Begins a wait. */
    public void begin() {
        beganNs = System.nanoTime();
        lookedNs = beganNs;
        beganRanNs = ThreadTime.ranNs();
        turns = 0;
        crowded = false;
    }

    /** Spins a little; false when it is time to sleep instead. */
    public boolean once() {
        Thread.onSpinWait();
        if (++turns % TURNS_A_CLOCK != 0) {
            return true;
        }
        long now = System.nanoTime();
        if (now - lookedNs > CROWD_LOOK_NS) {
            lookedNs = now;
            crowded = now - beganNs > ThreadTime.ranNs() - beganRanNs + CROWDED_NS;
        }
        return !crowded && now - beganNs < budgetNs;
    }

    /** Ends a wait; {@code granted}: what was waited for has come meanwhile. */
    public void end(boolean granted) {
        misses += granted || crowded ? 0 : 1;
        budgetNs = learn(budgetNs, limitNs, granted, crowded, misses);
    }

    /** What such a wait teaches: the next budget. */
    static long learn(long budgetNs, long limitNs, boolean granted, boolean crowded, int misses) {
        if (crowded) {
            return Math.max(budgetNs / 2, SHORTEST_NS);
        }
        if (granted) {
            return Math.min(limitNs, budgetNs + budgetNs / 8);
        }
        return misses % MISSES_A_TRY == 0 ? limitNs : budgetNs;
    }
}
