package io.hawser.broker.app;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.broker.model.StartException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BoundPortTest {
    @AfterEach
    void clearInterrupt() {
        Thread.interrupted();
    }

    @Test
    void shouldAskUntilThePortIsKnown() {
        AtomicInteger asked = new AtomicInteger();
        assertEquals(7655, BoundPort.await(() -> asked.incrementAndGet() < 3 ? -1 : 7655));
        assertEquals(3, asked.get());
    }

    @Test
    void shouldNotTakeTheConfiguredZeroForAPort() {
        AtomicInteger asked = new AtomicInteger();
        assertEquals(1, BoundPort.await(asked::getAndIncrement));
    }

    @Test
    void shouldGiveUp() {
        assertThrows(StartException.class, () -> BoundPort.await(() -> -1, Duration.ZERO));
        Thread.currentThread().interrupt();
        assertThrows(StartException.class, () -> BoundPort.await(() -> -1));
    }
}
