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
 * if (reader.available() == 0) {      // look again after prepare()
 *     sleeper.sleep(seen, timeoutNs); // then look again, whatever ended it
 * }
 * }</pre>
 *
 * <p>Only the waker takes the waiting word back to 0, so several threads may sleep by the same words. Any thread.
 */
public final class Sleeper {
    private final MemorySegment region;
    private final long waitingOffset;
    private final long signalOffset;

    /**
     * Makes one.
     *
     * @param region shared memory.
     * @param waitingOffset of the waiting word in it, aligned.
     * @param signalOffset of the signal word, aligned.
     */
    public Sleeper(MemorySegment region, long waitingOffset, long signalOffset) {
        this.region = region;
        this.waitingOffset = Words.check(region, waitingOffset, Integer.BYTES);
        this.signalOffset = Words.check(region, signalOffset, Integer.BYTES);
    }

    /** Says that the caller is about to sleep, and returns the signal's count. Look for work after this. */
    public int prepare() {
        int seen = (int) Words.I32.getAcquire(region, signalOffset);
        Words.I32.setVolatile(region, waitingOffset, 1);
        // The store must be seen before the look for work that follows: pairs with the fence in Waker.isAsked().
        VarHandle.fullFence();
        return seen;
    }

    /**
     * Sleeps on the futex until the signal is counted up, unless that has happened since {@link #prepare}. May return
     * early.
     *
     * @param timeoutNs at most so long; the other end may never wake.
     * @return false when the time was over.
     */
    public boolean sleep(int seen, long timeoutNs) {
        return Futex.await(region, signalOffset, seen, timeoutNs);
    }
}
