package io.hawser.worker.channel.ring;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * Lets a session thread sleep and wakes it. The guest wakes it by its carrier, and other threads of this process wake
 * it too; a hostile guest can only lengthen a sleep to its limit. The session thread calls {@code prepare}, checks for
 * work, calls {@code sleep}, and always calls {@code awake}.
 */
public abstract class RingSleep {
    /** The longest sleep: the worker then notices a guest that has left or has overwritten its own words. */
    private static final long LIMIT_NS = 100_000_000;

    private final AtomicBoolean asleep = new AtomicBoolean();
    private volatile Thread sleeper;
    private volatile boolean detached;

    /** Announces that the session thread is about to sleep. The caller checks for work after this. */
    final void prepare(boolean forRoom) {
        if (sleeper == null) {
            sleeper = Thread.currentThread();
        }
        asleep.set(true); // pairs with wake(): a thread that adds a task after the check for work sees this
        if (!detached) {
            announce(forRoom);
        }
    }

    /** Sleeps until there may be work, or until the limit. */
    final void sleep(long limitNs) throws IOException {
        if (limitNs <= 0 || !asleep.get()) {
            return;
        }
        if (detached) {
            LockSupport.parkNanos(this, Math.min(limitNs, LIMIT_NS));
        } else {
            await(Math.min(limitNs, LIMIT_NS));
        }
    }

    /** Ends the phase that {@link #prepare} began. */
    final void awake() {
        asleep.set(false);
    }

    /** Ends the sleep, if there is one. Any thread. */
    final void wake() {
        if (asleep.get() && asleep.compareAndSet(true, false)) {
            if (detached) {
                unpark();
            } else {
                rouse();
            }
        }
    }

    /** Ends a sleep of {@link LockSupport}. Any thread. */
    protected final void unpark() {
        LockSupport.unpark(sleeper);
    }

    /** Stops waiting for the guest: the guest wakes another thread, or none. Session thread. */
    final void detach() {
        detached = true;
    }

    /** Waits for the guest again, after {@link #detach}. Session thread. */
    final void attach() {
        detached = false;
    }

    /** Makes the next naps short, because the guest has just sent records. */
    protected void shortenNaps() {
    }

    /**
     * Asks the guest to wake this thread.
     *
     * @param forRoom whether the thread also waits for room in the ring of replies.
     */
    protected abstract void announce(boolean forRoom);

    /** Sleeps until the guest or {@link #rouse} wakes this thread, or the limit. May return early. */
    protected abstract void await(long limitNs) throws IOException;

    /** Wakes the session thread from {@link #await}. Any thread. */
    protected abstract void rouse();
}
