package io.hawser.shm.ring;

import io.hawser.shm.os.Futex;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;

/**
 * The waking side of a waiting word and its signal; {@code hws_wake} in C. A load and a fence while nobody sleeps. Any
 * thread.
 */
public final class Waker {
    private final MemorySegment region;
    private final long waitingOffset;
    private final long signalOffset;

    /** Makes one; parameters as of {@link Sleeper}. */
    public Waker(MemorySegment region, long waitingOffset, long signalOffset) {
        this.region = region;
        this.waitingOffset = Words.check(region, waitingOffset, Integer.BYTES);
        this.signalOffset = Words.check(region, signalOffset, Integer.BYTES);
    }

    /**
     * After the store that somebody may wait for: whether somebody sleeps, or is about to, and must be woken by the
     * caller (a futex, a doorbell). Answers true once for each time that somebody said so.
     */
    public boolean isAsked() {
        VarHandle.fullFence(); // pairs with the fence in Sleeper.prepare()
        return (int) Words.I32.getOpaque(region, waitingOffset) != 0
                && (int) Words.I32.getAndSet(region, waitingOffset, 0) != 0;
    }

    /** Counts the signal up and wakes its futex, whether anybody asked or not. */
    public void signal() {
        // Pairs with the load in Sleeper.prepare(); the count may wrap.
        @SuppressWarnings("unused")
        int before = (int) Words.I32.getAndAdd(region, signalOffset, 1);
        Futex.wake(region, signalOffset);
    }

    /** After the store that somebody may wait for: wakes by the futex if somebody asked. */
    public void wake() {
        if (isAsked()) {
            signal();
        }
    }
}
