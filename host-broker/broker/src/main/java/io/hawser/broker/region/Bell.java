package io.hawser.broker.region;

import io.hawser.shm.os.EventFd;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * Waits for the broker's own doorbell on a thread that sleeps in the kernel meanwhile, so that a region that nobody
 * uses costs nothing.
 */
final class Bell implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Bell.class);
    private static final long STACK_BYTES = 128 * 1024;

    private final EventFd doorbell;
    private final Runnable heard;
    private final Thread thread;
    private volatile boolean closed;

    /**
     * Starts to listen.
     *
     * @param heard called on the bell's thread; must not wait for the event loop, which {@link #close} may hold up.
     */
    Bell(String region, EventFd doorbell, Runnable heard) {
        this.doorbell = doorbell;
        this.heard = heard;
        thread = Thread.ofPlatform().daemon().name("hawser-bell-" + region).stackSize(STACK_BYTES).start(this::listen);
    }

    private void listen() {
        Pace pace = new Pace();
        try {
            while (!closed) {
                if (doorbell.poll(TimeUnit.HOURS.toNanos(1)) && !closed) {
                    heard.run();
                    pace.rest();
                }
            }
        } catch (IOException e) {
            LOG.errorf("a doorbell is heard no more, its region is looked at each half second: %s", e.getMessage());
        }
    }

    /** Ends the thread, which then does not use the doorbell any more. */
    @Override
    public void close() {
        closed = true;
        try {
            doorbell.signal();
            thread.join();
        } catch (IOException e) {
            LOG.errorf("a doorbell's thread could not be ended: %s", e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
