package io.hawser.shm.ring;

/**
 * How long a thread spins before it sleeps; {@code hws_spin_t} in C. It learns: a wait that ended while spinning was
 * worth it, one that did not was a processor taken from others, so the time goes down to almost none while waits are
 * long. One thread at a time.
 *
 * <pre>{@code
 * spin.begin();
 * while (nothing && spin.once()) { }
 * spin.end(slept);
 * }</pre>
 */
public final class Spin {
    private static final int LIMIT_NS = 50_000; // about what a sleep and a wake-up cost together
    private static final int FEWER_LIMIT_NS = 20_000; // here the other end may need the processor that spins
    private static final int FEW_CPUS = 2;
    private static final int SMALLEST_NS = 500; // so that it notices when waits become short again
    private static final int TURNS_A_CLOCK = 8; // looks at the word between two at the clock

    private final int limitNs;
    private int budgetNs;
    private int turns;
    private long sinceNs;
    private boolean timed;

    /** With the limits for the processors that this process may use. */
    public Spin() {
        this(Runtime.getRuntime().availableProcessors());
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
        if (limitNs == 0) {
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
        if (slept) {
            budgetNs = Math.min(limitNs, Math.max(SMALLEST_NS, budgetNs / 2));
        } else if (turns != 0) {
            budgetNs = Math.min(limitNs, budgetNs * 2);
        }
    }

    int budgetNs() {
        return budgetNs;
    }
}
