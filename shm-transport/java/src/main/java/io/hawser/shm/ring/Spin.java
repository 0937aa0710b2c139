package io.hawser.shm.ring;

/**
 * Determines how long a thread spins before it sleeps; {@code hws_spin_t} in C. It learns from its waits. A wait that
 * ends while spinning was worth its cost. A wait that does not has occupied a processor in vain. The time therefore
 * falls to zero while waits are long. Two ends that both sleep would never learn that neither must: at intervals one
 * wait spins for the full limit. One thread at a time.
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
    /** About the cost of a sleep and a wake-up by another processor that is idle. */
    private static final int LIMIT_NS = 50_000;
    /** With up to FEW_CPUS processors, the spinning thread may occupy the processor that the other end needs. */
    private static final int FEWER_LIMIT_NS = 20_000;
    private static final int FEW_CPUS = 2;
    /** A shorter spin is not worth its reads of the clock. */
    private static final int SMALLEST_NS = 1_000;
    /** After this many sleeps, one wait spins up to LIMIT_NS, in which the other end can wake up. */
    private static final int SLEEPS_A_TRY = 16;
    /** Checks of the word between two reads of the clock. */
    private static final int TURNS_A_CLOCK = 8;

    private final int limitNs;
    private int budgetNs;
    private int turns;
    private int sleeps; // in succession
    private long sinceNs;
    private boolean timed;

    /** Uses the limits for the number of processors available to this process. */
    public Spin() {
        this(isWanted() ? Runtime.getRuntime().availableProcessors() : 1);
    }

    /** False where the system property {@code hawser.spin} is {@code off}, for measurements or to save power. */
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

    /** Spins briefly; returns false when the thread should sleep instead, and on every later call of the same wait. */
    public boolean once() {
        if (budgetNs == 0) {
            return false;
        }
        Thread.onSpinWait(); // once between two checks: on recent processors it takes 140 cycles
        if (++turns % TURNS_A_CLOCK != 0) {
            return true;
        }
        long now = System.nanoTime();
        if (!timed) {
            timed = true; // a short wait never reads the clock
            sinceNs = now;
            return true;
        }
        return now - sinceNs < budgetNs;
    }

    /** Ends a wait; {@code slept}: the thread has also slept. */
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
