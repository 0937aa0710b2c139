package io.hawser.broker.app;

import io.hawser.broker.model.StartException;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;

/**
 * Waits until the HTTP server's port is known. Quarkus opens the server once on each event loop. The loop that is
 * first writes the port down, but whichever loop comes first to the line below it tells of the start, so that an
 * observer may be asked while the writing loop still stands between the two ({@code VertxHttpRecorder} of 3.32).
 */
final class BoundPort {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final Duration PAUSE = Duration.ofMillis(1);

    private BoundPort() {
    }

    /**
     * The port. Not on an event loop: it waits.
     *
     * @param port what is known now; negative or 0 until the port is
     * @throws StartException when it is not known for 30 s, or the thread is interrupted
     */
    static int await(IntSupplier port) {
        return await(port, LIMIT);
    }

    static int await(IntSupplier port, Duration limit) {
        long end = System.nanoTime() + limit.toNanos();
        int known = port.getAsInt();
        while (known <= 0) {
            if (System.nanoTime() - end > 0 || Thread.currentThread().isInterrupted()) {
                throw new StartException("the HTTP server listens, but on which port was not known within " + limit);
            }
            LockSupport.parkNanos(PAUSE.toNanos());
            known = port.getAsInt();
        }
        return known;
    }
}
