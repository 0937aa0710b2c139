package io.hawser.broker.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.pool.WorkerMessage;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class SharedMemoryTest {
    private static final int MAX = SharedMemory.MAX_NAMES;

    private final SharedMemory memory = new SharedMemory();

    private static WorkerMessage.Share named(int name) {
        return new WorkerMessage.Share(String.format("%032x", name), "ab".repeat(64), 100 + name);
    }

    private static String name(int name) {
        return named(name).name();
    }

    @Test
    void shouldFindMemoryOfTheSameVgpuOnly() {
        assertTrue(memory.share(1, "one", named(7)));
        assertEquals(Optional.of(named(7)), memory.find("one", name(7)));
        assertEquals(Optional.empty(), memory.find("two", name(7)));
        assertEquals(Optional.empty(), memory.find("one", name(8)));
        assertTrue(memory.share(2, "two", named(7)), "another vGPU's names are its own");
        memory.unshare(2, "two", name(7));
        assertEquals(Optional.of(named(7)), memory.find("one", name(7)));
    }

    @Test
    void shouldLetNoSessionTouchAnothersName() {
        assertTrue(memory.share(1, "one", named(7)));
        assertFalse(memory.share(2, "one", new WorkerMessage.Share(name(7), "cd".repeat(64), 1)));
        memory.unshare(2, "one", name(7));
        memory.unshare(2, "nothing", name(7));
        assertEquals(Optional.of(named(7)), memory.find("one", name(7)));
    }

    @Test
    void shouldBoundTheNamesOfASession() {
        for (int i = 0; i < MAX; i++) {
            assertTrue(memory.share(1, "one", named(i)));
        }
        assertFalse(memory.share(1, "one", named(MAX)));
        assertTrue(memory.share(2, "one", named(MAX)));
        memory.unshare(1, "one", name(0));
        assertTrue(memory.share(1, "one", named(MAX + 1)));
        assertFalse(memory.share(1, "one", named(MAX + 2)));
    }

    @Test
    void shouldForgetWhatASessionHasShared() {
        memory.share(1, "one", named(1));
        memory.share(2, "one", named(2));
        memory.share(2, "one", named(3));
        memory.gone(2, "one");
        memory.gone(3, "never");
        assertEquals(1, memory.size());
        assertEquals(Optional.of(named(1)), memory.find("one", name(1)));
        assertEquals(Optional.empty(), memory.find("one", name(2)));
        for (int i = 10; i < 10 + MAX; i++) {
            assertTrue(memory.share(2, "one", named(i)), "counts from the beginning");
        }
    }
}
