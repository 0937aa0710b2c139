package io.hawser.hypervisor.reconcile;

import io.hawser.hypervisor.log.Log;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/** The thread that runs the reconciler's passes: at each request, and after an interval without one. */
final class Passes implements AutoCloseable {
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);

    private final Runnable pass;
    private final Duration interval;
    private final Thread thread = new Thread(this::run, "reconciler");
    private volatile boolean requested = true;
    private volatile long dueNs; // System.nanoTime() of the next pass without a request
    private volatile boolean closed;

    /** Runs no pass before {@link #start()}. */
    Passes(Runnable pass, Duration interval) {
        this.pass = pass;
        this.interval = interval;
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** Requests a pass as soon as possible. Any thread. */
    void request() {
        requested = true;
        LockSupport.unpark(thread);
    }

    /** Requests a pass within this time. Any thread. */
    void request(Duration pause) {
        runBy(System.nanoTime() + pause.toNanos(), false);
        LockSupport.unpark(thread);
    }

    private synchronized void runBy(long ns, boolean replace) {
        if (replace || ns - dueNs < 0) {
            dueNs = ns;
        }
    }

    private void run() {
        while (!closed) {
            while (!requested && !closed && dueNs - System.nanoTime() > 0) {
                LockSupport.parkNanos(this, dueNs - System.nanoTime());
            }
            requested = false;
            // First, because the pass may request an earlier next pass.
            runBy(System.nanoTime() + interval.toNanos(), true);
            try {
                pass.run();
            } catch (RuntimeException e) {
                Log.fault("", e); // the cause may be gone in the next pass
            }
        }
    }

    /** Whether no further pass begins, and the present one must end soon. */
    boolean isClosed() {
        return closed;
    }

    /** Waits for the present pass, up to a limit. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
        try {
            thread.join(CLOSE_LIMIT);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
