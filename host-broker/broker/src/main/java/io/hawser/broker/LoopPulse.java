package io.hawser.broker;

import io.netty.channel.EventLoop;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** Tells how long an event loop has not come round: whoever asks neither waits for it nor wakes it. */
final class LoopPulse {
    private static final long PERIOD_MS = 500;

    private volatile long beatNs = System.nanoTime();

    /** Watches a loop until it is shut down. */
    LoopPulse(EventLoop loop) {
        loop.scheduleAtFixedRate(() -> beatNs = System.nanoTime(), PERIOD_MS, PERIOD_MS, TimeUnit.MILLISECONDS);
    }

    /** For how long it has not come round; less than a second when it is well. Any thread. */
    Duration silence() {
        return Duration.ofNanos(Math.max(0, System.nanoTime() - beatNs));
    }
}
