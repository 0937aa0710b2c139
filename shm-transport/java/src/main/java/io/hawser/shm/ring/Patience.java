package io.hawser.shm.ring;

import io.hawser.shm.os.ThreadTime;

/**
 * Determines how long a thread spins for a device before it sleeps; {@code hws_patience_t} in C. It learns whether
 * processors are idle. If the scheduler has suspended the spinning thread, other threads need the processor, so the
 * time is halved. A wait that ends while spinning lengthens the time. If all waits were longer, the thread would never
 * learn that processors have become idle: at intervals one wait therefore spins for the full limit. One thread at a
 * time.
 */
public final class Patience {
    /** Longer than most waits of programs that profit from spinning; a backend may use a shorter limit. */
    private static final long LIMIT_NS = 20_000_000;
    private static final long SHORTEST_NS = 50_000;
    private static final long CROWD_LOOK_NS = 100_000; // between two reads of the thread's own time
    /** If the thread's own time lags this far behind the elapsed time, the scheduler has run other threads. */
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

    /** Uses the default limit. */
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

    /** Spins briefly; returns false when the thread should sleep instead. */
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

    /** Ends a wait; {@code granted}: the awaited event came while spinning. */
    public void end(boolean granted) {
        misses += granted || crowded ? 0 : 1;
        budgetNs = learn(budgetNs, limitNs, granted, crowded, misses);
    }

    /** The next budget, after a wait with the given outcome. */
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
