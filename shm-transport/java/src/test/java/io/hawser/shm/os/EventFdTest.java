package io.hawser.shm.os;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class EventFdTest {
    private static final long LONG_NS = TimeUnit.SECONDS.toNanos(60);

    @Test
    void shouldAnswerOnceForAllSignalsBefore() throws IOException {
        try (EventFd event = EventFd.create()) {
            assertFalse(event.poll(0));
            assertFalse(event.poll(1000));
            event.signal();
            event.signal();
            assertTrue(event.poll(LONG_NS));
            assertFalse(event.poll(0));
            event.signal();
            assertTrue(event.poll(0));
        }
    }

    @Test
    void shouldWakeAWaiterForEachSignal() throws Exception {
        try (EventFd event = EventFd.create(); EventFd answer = EventFd.create()) {
            CompletableFuture<Integer> waiter = CompletableFuture.supplyAsync(() -> {
                try {
                    int count = 0;
                    while (count < 200) {
                        if (event.poll(LONG_NS)) {
                            count++;
                            answer.signal();
                        }
                    }
                    return count;
                } catch (IOException e) {
                    throw new IllegalStateException(e);
                }
            });
            for (int i = 0; i < 200; i++) {
                event.signal();
                assertTrue(answer.poll(LONG_NS));
            }
            assertEquals(200, waiter.get(60, TimeUnit.SECONDS));
        }
    }

    @Test
    void shouldRefuseADescriptorThatIsNotOpen() {
        assertThrows(IOException.class, () -> EventFd.of(-1));
    }
}
