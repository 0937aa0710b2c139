package io.hawser.broker.app;

import io.hawser.broker.model.StartException;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;

/**
 * Waits until the HTTP server's port is known. Quarkus opens the server once on each event loop. The first loop writes
 * the port, but another loop may be the first to send the start event. An observer can therefore run before the port is
 * written ({@code VertxHttpRecorder} of 3.32).
 */
final class BoundPort {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final Duration PAUSE = Duration.ofMillis(1);

    private BoundPort() {
    }

    /**
     * The port. Waits, so not on an event loop.
     *
     * @param port the present value; negative or 0 until the port is known
     * @throws StartException when it is unknown for 30 s, or the thread is interrupted
     */
    static int await(IntSupplier port) {
        return await(port, LIMIT);
    }

    static int await(IntSupplier port, Duration limit) {
        long end = System.nanoTime() + limit.toNanos();
        int known = port.getAsInt();
        while (known <= 0) {
            if (System.nanoTime() - end > 0 || Thread.currentThread().isInterrupted()) {
                throw new StartException("the HTTP server has started, but its port was unknown for " + limit);
            }
            LockSupport.parkNanos(PAUSE.toNanos());
            known = port.getAsInt();
        }
        return known;
    }
}
