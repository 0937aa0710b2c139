package io.hawser.shm.os;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class FutexTest {
    private SharedMemory shared;
    private MemorySegment memory;

    @BeforeEach
    void map() throws Exception {
        int fd = Descriptors.memory("hawser-test", 4096);
        shared = SharedMemory.map(fd, 4096, 0);
        memory = shared.memory();
        Descriptors.close(fd);
    }

    @AfterEach
    void unmap() {
        shared.close();
    }

    @Test
    void shouldNotSleepWhenTheWordHasChanged() {
        memory.set(ValueLayout.JAVA_INT, 8, 3);
        assertTrue(Futex.await(memory, 8, 2, TimeUnit.HOURS.toNanos(1)));
    }

    @Test
    void shouldEndWithItsTime() {
        assertFalse(Futex.await(memory, 8, 0, 1000));
        assertFalse(Futex.await(memory, 8, 0, 0));
        assertFalse(Futex.await(memory, 8, 0, -1));
    }

    @Test
    void shouldWakeASleepingThread() throws Exception {
        assertEquals(0, Futex.wake(memory, 8));
        CompletableFuture<Boolean> sleeper = CompletableFuture.supplyAsync(
            () -> Futex.await(memory, 8, 0, TimeUnit.HOURS.toNanos(1)));
        while (Futex.wake(memory, 8) == 0) {
            Thread.onSpinWait();
        }
        assertTrue(sleeper.get(60, TimeUnit.SECONDS));
    }

    @Test
    void shouldRefuseAWordOutsideTheMemory() {
        assertThrows(IndexOutOfBoundsException.class, () -> Futex.wake(memory, 4093));
        assertThrows(IndexOutOfBoundsException.class, () -> Futex.await(memory, -4, 0, 1000));
    }
}
