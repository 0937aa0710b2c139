package io.hawser.broker;

import io.netty.channel.EventLoop;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.TimeUnit;

/** Measures the time since an event loop last ran its timer. Reading it neither waits for the loop nor wakes it. */
public final class LoopPulse {
    private static final long PERIOD_MS = 500;

    private final Instant started = Instant.now();
    private volatile long beatNs = System.nanoTime();

    /** Watches a loop until its shutdown. */
    LoopPulse(EventLoop loop) {
        loop.scheduleAtFixedRate(() -> beatNs = System.nanoTime(), PERIOD_MS, PERIOD_MS, TimeUnit.MILLISECONDS);
    }

    /** The loop's start. Any thread. */
    public Instant started() {
        return started;
    }

    /** Time since the loop last ran its timer; below a second for a healthy loop. Any thread. */
    public Duration silence() {
        return Duration.ofNanos(Math.max(0, System.nanoTime() - beatNs));
    }
}
