package io.hawser.broker.region;

import io.hawser.shm.os.EventFd;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * Waits for the broker's own doorbell on a thread that sleeps in the kernel, so that an unused region costs nothing.
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
     * @param heard runs on the bell's thread; must not wait for the event loop, because the loop may wait in {@link
     *     #close}.
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
            LOG.errorf("a doorbell failed, its region is now polled each half second: %s", e.getMessage());
        }
    }

    /** Ends the thread. After the return nothing reads the doorbell. */
    @Override
    public void close() {
        closed = true;
        try {
            doorbell.signal();
            thread.join();
        } catch (IOException e) {
            LOG.errorf("a doorbell's thread did not end: %s", e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
