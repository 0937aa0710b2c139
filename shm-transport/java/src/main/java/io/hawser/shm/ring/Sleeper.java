package io.hawser.shm.ring;

import io.hawser.shm.os.Futex;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;

/**
 * The sleeping side of two shared words, a waiting word and a signal; {@code hws_wait_prepare} and
 * {@code hws_wait_sleep} in C, whose header shows the protocol:
 *
 * <pre>{@code
 * int seen = sleeper.prepare();
 * if (reader.available() == 0) {      // check again after prepare()
 *     sleeper.sleep(seen, timeoutNs); // then check again, whatever ended the sleep
 * }
 * }</pre>
 *
 * <p>Only the waker resets the waiting word to 0, so several threads may sleep by the same words. Any thread.
 */
public final class Sleeper {
    private final MemorySegment region;
    private final long waitingOffset;
    private final long signalOffset;

    /**
     * Creates a sleeper.
     *
     * @param region shared memory.
     * @param waitingOffset offset of the waiting word in it, aligned.
     * @param signalOffset offset of the signal word in it, aligned.
     */
    public Sleeper(MemorySegment region, long waitingOffset, long signalOffset) {
        this.region = region;
        this.waitingOffset = Words.check(region, waitingOffset, Integer.BYTES);
        this.signalOffset = Words.check(region, signalOffset, Integer.BYTES);
    }

    /** Announces a sleep and returns the signal's count. The caller must check for work after this call. */
    public int prepare() {
        int seen = (int) Words.I32.getAcquire(region, signalOffset);
        Words.I32.setVolatile(region, waitingOffset, 1);
        // The store must be visible before the following check for work: pairs with the fence in Waker.takeWaiting().
        VarHandle.fullFence();
        return seen;
    }

    /**
     * Sleeps on the futex until the signal's count changes, unless it has changed since {@link #prepare}. May return
     * early.
     *
     * @param timeoutNs maximum sleep, because the other end may never wake this thread.
     * @return false after the timeout.
     */
    public boolean sleep(int seen, long timeoutNs) {
        return Futex.await(region, signalOffset, seen, timeoutNs);
    }
}
