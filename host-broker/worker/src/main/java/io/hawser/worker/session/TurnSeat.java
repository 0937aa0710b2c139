package io.hawser.worker.session;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.turns.TurnPage;
import io.hawser.worker.channel.Link;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.locks.LockSupport;

/**
 * A worker's place in the order of turns: the page and the bell from the broker. A thread waits for the page's permit
 * while the session thread waits for its guest. The creator closes it, after the session thread has ended.
 */
public final class TurnSeat implements AutoCloseable {
    private static final Logger LOG = System.getLogger(TurnSeat.class.getName());
    /** Longest wait for a permit: bounds the delay when the broker does not wake the thread. */
    private static final long SLEEP_NS = 50_000_000;

    private final TurnPage page;
    private final EventFd bell;
    private Thread thread; // written by the session thread only, as the next three fields
    private boolean notice;
    private Link link;
    private Runnable turnCame;
    private volatile boolean armed;
    private volatile boolean closed;

    private TurnSeat(TurnPage page, EventFd bell) {
        this.page = page;
        this.bell = bell;
    }

    /**
     * Takes a page and a bell.
     *
     * @param pageDescriptor closed by this method.
     * @param bellDescriptor owned by the result.
     * @return the seat.
     * @throws IOException if the page cannot be mapped, or the bell is not an eventfd.
     */
    public static TurnSeat of(int pageDescriptor, int bellDescriptor) throws IOException {
        try {
            return new TurnSeat(TurnPage.map(pageDescriptor), EventFd.of(bellDescriptor));
        } finally {
            Descriptors.close(pageDescriptor);
        }
    }

    TurnPage page() {
        return page;
    }

    /** Wakes the broker. */
    void ring() {
        try {
            bell.signal();
        } catch (IOException e) {
            // The broker also reads the page periodically, so a failed wake-up only delays turns.
            LOG.log(Level.DEBUG, "the broker cannot be woken: {0}", e.getMessage());
        }
    }

    /**
     * Runs an action on the session thread once the permit is no longer WAIT. Session thread.
     *
     * @param early whether NEXT is enough; the session thread then polls until its turn has come.
     * @param on the session's link.
     * @param action runs there, at most once for each call.
     */
    void wake(boolean early, Link on, Runnable action) {
        notice = early;
        link = on;
        turnCame = action;
        // Written last: pairs with the thread's read of armed, after which it reads the three fields above.
        armed = true;
        if (thread == null) {
            thread = new Thread(this::run, "turns");
            thread.setDaemon(true);
            thread.start();
        } else {
            LockSupport.unpark(thread);
        }
    }

    private void run() {
        while (!closed) {
            if (!armed) {
                LockSupport.park(this);
            } else if (page.permit() == TurnPage.WAIT || page.permit() == TurnPage.NEXT && !notice) {
                page.awaitPermit(notice, SLEEP_NS);
            } else {
                armed = false;
                try {
                    link.execute(turnCame);
                } catch (RejectedExecutionException e) {
                    return; // the session thread has ended
                }
            }
        }
    }

    /** Ends the thread and unmaps the page. */
    @Override
    public void close() {
        closed = true;
        if (thread != null) {
            LockSupport.unpark(thread);
            try {
                thread.join(2 * SLEEP_NS / 1_000_000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // the process ends next
            }
            if (thread.isAlive()) {
                return; // it still reads the page, which the exit of the process unmaps
            }
        }
        page.close();
        bell.close();
    }
}
