package io.hawser.shm.ring;

import io.hawser.shm.os.Futex;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;

/**
 * The waking side of a waiting word and its signal; {@code hws_wake} in C. Without a sleeper it costs a load and a
 * fence. Any thread.
 */
public final class Waker {
    private final MemorySegment region;
    private final long waitingOffset;
    private final long signalOffset;

    /** Creates a waker; parameters as of {@link Sleeper}. */
    public Waker(MemorySegment region, long waitingOffset, long signalOffset) {
        this.region = region;
        this.waitingOffset = Words.check(region, waitingOffset, Integer.BYTES);
        this.signalOffset = Words.check(region, signalOffset, Integer.BYTES);
    }

    /**
     * Resets the waiting word. Call it after the store that a sleeping thread may wait for.
     *
     * @return whether a thread sleeps or is about to sleep, so that the caller must wake it by a futex or a doorbell;
     *     true once for each announced sleep.
     */
    public boolean takeWaiting() {
        VarHandle.fullFence(); // pairs with the fence in Sleeper.prepare()
        return (int) Words.I32.getOpaque(region, waitingOffset) != 0
            && (int) Words.I32.getAndSet(region, waitingOffset, 0) != 0;
    }

    /** Increments the signal and wakes its futex, whether or not a thread sleeps. */
    public void signal() {
        // Pairs with the load in Sleeper.prepare(); the count may wrap.
        @SuppressWarnings("unused")
        int before = (int) Words.I32.getAndAdd(region, signalOffset, 1);
        Futex.wake(region, signalOffset);
    }

    /** Wakes a sleeping thread by the futex. Call it after the store that the thread may wait for. */
    public void wake() {
        if (takeWaiting()) {
            signal();
        }
    }
}
