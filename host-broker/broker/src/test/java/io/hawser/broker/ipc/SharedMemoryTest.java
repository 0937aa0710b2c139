package io.hawser.broker.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.pool.WorkerMessage;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class SharedMemoryTest {
    private static final int MAX = SharedMemory.MAX_NAMES;

    private final Map<String, Long> charges = new HashMap<>();
    private final SharedMemory memory = new SharedMemory(new SharedMemory.Charges() {
        @Override
        public void keep(String vgpu, WorkerMessage.Share share) {
            charges.merge(vgpu, share.chargedBytes(), Long::sum);
        }

        @Override
        public void release(String vgpu, WorkerMessage.Share share) {
            charges.merge(vgpu, -share.chargedBytes(), Long::sum);
        }
    });

    private static WorkerMessage.Share named(int name) {
        return new WorkerMessage.Share(String.format("%032x", name), "ab".repeat(64), 100 + name, 0, 1000 + name);
    }

    private static String name(int name) {
        return named(name).name();
    }

    @Test
    void shouldFindMemoryOfTheSameVgpuOnly() {
        assertTrue(memory.share(1, "one", named(7)));
        assertEquals(Optional.of(named(7)), memory.find(9, "one", name(7)));
        assertEquals(Optional.empty(), memory.find(9, "two", name(7)));
        assertEquals(Optional.empty(), memory.find(9, "one", name(8)));
        assertTrue(memory.share(2, "two", named(7)), "each vGPU must have its own names");
        memory.unshare(2, "two", name(7));
        assertEquals(Optional.of(named(7)), memory.find(9, "one", name(7)));
    }

    @Test
    void shouldLetNoSessionTouchAnothersName() {
        assertTrue(memory.share(1, "one", named(7)));
        assertFalse(memory.share(2, "one", new WorkerMessage.Share(name(7), "cd".repeat(64), 1, 0, 1)));
        memory.unshare(2, "one", name(7));
        memory.unshare(2, "nothing", name(7));
        assertEquals(Optional.of(named(7)), memory.find(9, "one", name(7)));
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
        memory.sessionEnded(2, "one");
        memory.sessionEnded(3, "never");
        assertEquals(1, memory.size());
        assertEquals(Optional.of(named(1)), memory.find(9, "one", name(1)));
        assertEquals(Optional.empty(), memory.find(9, "one", name(2)));
        for (int i = 10; i < 10 + MAX; i++) {
            assertTrue(memory.share(2, "one", named(i)), "names of an ended session must not count");
        }
    }

    @Test
    void shouldChargeWhatImportersHaveAfterItsOwnersEnd() {
        memory.share(1, "one", named(7));
        memory.find(2, "one", name(7));
        memory.find(3, "one", name(7));
        assertEquals(Map.of(), charges, "the vGPU must not pay while the owner pays");
        memory.sessionEnded(1, "one");
        assertEquals(Map.of("one", 1007L), charges);
        assertEquals(Optional.empty(), memory.find(4, "one", name(7)), "no other session may open the memory");
        assertFalse(memory.share(4, "one", named(7)), "the name must stay taken");
        memory.release(2, "one", name(7));
        assertEquals(Map.of("one", 1007L), charges, "session 3 must still hold the memory");
        memory.sessionEnded(3, "one");
        assertEquals(Map.of("one", 0L), charges);
        assertEquals(0, memory.size());
    }

    @Test
    void shouldChargeWhatImportersHaveAfterItsOwnerFreedIt() {
        memory.share(1, "one", named(7));
        memory.find(2, "one", name(7));
        memory.find(2, "one", name(7));
        memory.unshare(1, "one", name(7));
        memory.unshare(1, "one", name(7));
        assertEquals(Map.of("one", 1007L), charges, "a repeated unshare must not charge twice");
        memory.sessionEnded(1, "one");
        memory.release(2, "one", name(7));
        assertEquals(Map.of("one", 1007L), charges, "a name that was found twice must be released twice");
        memory.release(2, "one", name(7));
        memory.release(2, "one", name(7));
        assertEquals(Map.of("one", 0L), charges);
    }

    @Test
    void shouldChargeNothingThatNobodyElseHas() {
        memory.share(1, "one", named(7));
        memory.find(2, "one", name(7));
        memory.release(2, "one", name(7));
        memory.find(1, "one", name(7)); // the owner's own name
        memory.share(1, "one", named(8));
        memory.find(2, "one", name(8));
        memory.sessionEnded(2, "one");
        memory.share(1, "one", new WorkerMessage.Share(name(9), "ab".repeat(64), 0, 0, 0)); // an event
        memory.find(2, "one", name(9));
        memory.sessionEnded(1, "one");
        assertEquals(Map.of(), charges);
        assertEquals(0, memory.size());
    }

    @Test
    void shouldChargeNoOtherVgpu() {
        memory.share(1, "one", named(7));
        memory.find(2, "two", name(7));
        memory.release(2, "two", name(7));
        memory.find(3, "one", name(7));
        memory.release(2, "one", name(7));
        memory.unshare(2, "one", name(7));
        memory.sessionEnded(2, "two");
        assertEquals(Map.of(), charges);
        memory.sessionEnded(1, "one");
        assertEquals(Map.of("one", 1007L), charges);
    }

    @Test
    void shouldBoundTheImportsOfASession() {
        memory.share(1, "one", named(7));
        for (int i = 0; i < SharedMemory.MAX_IMPORTS; i++) {
            assertTrue(memory.find(2, "one", name(7)).isPresent());
        }
        assertEquals(Optional.empty(), memory.find(2, "one", name(7)));
        assertTrue(memory.find(3, "one", name(7)).isPresent());
        memory.release(2, "one", name(7));
        assertTrue(memory.find(2, "one", name(7)).isPresent());
    }
}
