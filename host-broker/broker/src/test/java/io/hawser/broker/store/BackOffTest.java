package io.hawser.broker.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class BackOffTest {
    private final AtomicLong nowNs = new AtomicLong(Long.MAX_VALUE - 5); // the clock overflows during the test
    private final BackOff backOff = new BackOff(Duration.ofMillis(50), Duration.ofSeconds(2), nowNs::get);

    @Test
    void shouldTryAtOnceAndThenEverLaterUpToAMaximum() {
        assertEquals(0, backOff.waitMs());
        backOff.recordFailure();
        assertEquals(0, backOff.waitMs());
        for (long wantedMs : new long[] {50, 100, 200, 400, 800, 1600, 2000, 2000}) {
            backOff.recordFailure();
            assertEquals(wantedMs + 1, backOff.waitMs());
            nowNs.addAndGet(TimeUnit.MILLISECONDS.toNanos(wantedMs) - 1);
            assertEquals(1, backOff.waitMs());
            nowNs.incrementAndGet();
            assertEquals(0, backOff.waitMs());
        }
        for (int i = 0; i < 100; i++) {
            backOff.recordFailure();
        }
        assertEquals(2001, backOff.waitMs());
        backOff.recordSuccess();
        assertEquals(0, backOff.waitMs());
        backOff.recordFailure();
        assertEquals(0, backOff.waitMs());
    }
}
