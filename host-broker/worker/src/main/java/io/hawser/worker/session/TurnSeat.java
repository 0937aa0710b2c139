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
 * Where a worker takes its turns: the page and the bell that the broker has given it, and a thread that sleeps by the
 * page while the session thread sleeps by what it reads from. Closed by who made it, after the session thread's end.
 */
public final class TurnSeat implements AutoCloseable {
    private static final Logger LOG = System.getLogger(TurnSeat.class.getName());
    /** A broker that forgets to wake costs so much, no more. */
    private static final long SLEEP_NS = 50_000_000;

    private final TurnPage page;
    private final EventFd bell;
    private Thread thread; // the session thread's, as the next three
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
     * @param pageDescriptor closed by this.
     * @param bellDescriptor owned by this.
     * @return the seat.
     * @throws IOException if the page cannot be mapped, or the bell is none.
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
            // The broker looks by itself as well, later: turns are worse, and nothing else is.
            LOG.log(Level.DEBUG, "the broker cannot be woken: {0}", e.getMessage());
        }
    }

    /**
     * Has an action run on the session thread when the permit is not WAIT any more. Session thread.
     *
     * @param early whether NEXT is enough: the session thread asks then until its turn has come.
     * @param on the session's link.
     * @param action run there, once for each call or less.
     */
    void wake(boolean early, Link on, Runnable action) {
        notice = early;
        link = on;
        turnCame = action;
        armed = true; // after the three above, which the thread reads after this
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
                return; // it still looks at the page, which goes with the process
            }
        }
        page.close();
        bell.close();
    }
}
