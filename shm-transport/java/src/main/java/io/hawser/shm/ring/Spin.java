package io.hawser.shm.ring;

/**
 * How long a thread spins before it sleeps; {@code hws_spin_t} in C. It learns: a wait that ended while spinning was
 * worth it, one that did not was a processor taken from others, so the time goes down to none while waits are long.
 * Two ends that both sleep would never learn that neither has to, so now and then one spins as long as it may. One
 * thread at a time.
 *
 * <pre>{@code
 * spin.begin();
 * boolean ready = look();
 * while (!ready && spin.once()) {
 *     ready = look();
 * }
 * boolean slept = !ready;
 * while (!ready) { sleep, look }
 * spin.end(slept);
 * }</pre>
 */
public final class Spin {
    /** About what a sleep and a wake-up by another processor that idles cost together. */
    private static final int LIMIT_NS = 50_000;
    /** Up to FEW_CPUS processors the one that spins may be the one that is needed. */
    private static final int FEWER_LIMIT_NS = 20_000;
    private static final int FEW_CPUS = 2;
    /** Below this a spin is not worth its looks at the clock. */
    private static final int SMALLEST_NS = 1_000;
    /** After so many, one wait spins up to LIMIT_NS, in which the other end can wake up. */
    private static final int SLEEPS_A_TRY = 16;
    /** Looks at the word between two at the clock. */
    private static final int TURNS_A_CLOCK = 8;

    private final int limitNs;
    private int budgetNs;
    private int turns;
    private int sleeps; // one after the other
    private long sinceNs;
    private boolean timed;

    /** With the limits for the processors that this process may use. */
    public Spin() {
        this(isWanted() ? Runtime.getRuntime().availableProcessors() : 1);
    }

    /** False where the system property {@code hawser.spin} says {@code off}: to measure without, or to save power. */
    public static boolean isWanted() {
        return !"off".equals(System.getProperty("hawser.spin"));
    }

    Spin(int cpus) {
        limitNs = cpus < 2 ? 0 : cpus <= FEW_CPUS ? FEWER_LIMIT_NS : LIMIT_NS;
        budgetNs = limitNs;
    }

    /** Begins a wait. */
    public void begin() {
        turns = 0;
        timed = false;
    }

    /** Spins a little; false when it is time to sleep instead, and each time after that. */
    public boolean once() {
        if (budgetNs == 0) {
            return false;
        }
        Thread.onSpinWait(); // once between two looks: on recent processors it takes 140 cycles
        if (++turns % TURNS_A_CLOCK != 0) {
            return true;
        }
        long now = System.nanoTime();
        if (!timed) {
            timed = true; // a short wait never looks at the clock
            sinceNs = now;
            return true;
        }
        return now - sinceNs < budgetNs;
    }

    /** Ends a wait; {@code slept}: it has slept as well. */
    public void end(boolean slept) {
        if (limitNs == 0) {
            return;
        }
        if (!slept) {
            if (turns != 0) {
                sleeps = 0;
                budgetNs = Math.min(limitNs, budgetNs * 2);
            }
        } else if (++sleeps % SLEEPS_A_TRY == 0) {
            budgetNs = LIMIT_NS;
        } else {
            int half = budgetNs / 2;
            budgetNs = sleeps > SLEEPS_A_TRY || half < SMALLEST_NS ? 0 : half;
        }
    }

    int budgetNs() {
        return budgetNs;
    }
}
