package io.hawser.broker.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.pool.WorkerMessage;
import io.hawser.shm.events.EventPage;
import io.hawser.shm.os.Descriptors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class SharedMemoryTest {
    private static final int MAX = SharedMemory.MAX_NAMES;
    private static final int MAX_DESCRIPTORS = 40;

    private final Map<String, Long> charges = new HashMap<>();
    private final SharedMemory memory = new SharedMemory(new ChargeSums(charges), MAX_DESCRIPTORS);

    private static WorkerMessage.Share named(int name) {
        return new WorkerMessage.Share(String.format("%032x", name), "ab".repeat(64), 100 + name, 0, 1000 + name,
            false);
    }

    private boolean share(long session, String vgpu, WorkerMessage.Share share) {
        return memory.share(session, vgpu, share, SharedMemory.NO_DESCRIPTOR);
    }

    private Optional<WorkerMessage.Share> find(long session, String vgpu, String name) {
        return memory.find(session, vgpu, name).map(SharedMemory.Found::share);
    }

    private static String name(int name) {
        return named(name).name();
    }

    @Test
    void shouldFindMemoryOfTheSameVgpuOnly() {
        assertTrue(share(1, "one", named(7)));
        assertEquals(Optional.of(named(7)), find(9, "one", name(7)));
        assertEquals(Optional.empty(), find(9, "two", name(7)));
        assertEquals(Optional.empty(), find(9, "one", name(8)));
        assertTrue(share(2, "two", named(7)), "each vGPU must have its own names");
        memory.unshare(2, "two", name(7));
        assertEquals(Optional.of(named(7)), find(9, "one", name(7)));
    }

    @Test
    void shouldLetNoSessionTouchAnothersName() {
        assertTrue(share(1, "one", named(7)));
        assertFalse(share(2, "one", new WorkerMessage.Share(name(7), "cd".repeat(64), 1, 0, 1, false)));
        memory.unshare(2, "one", name(7));
        memory.unshare(2, "nothing", name(7));
        assertEquals(Optional.of(named(7)), find(9, "one", name(7)));
    }

    @Test
    void shouldBoundTheNamesOfASession() {
        for (int i = 0; i < MAX; i++) {
            assertTrue(share(1, "one", named(i)));
        }
        assertFalse(share(1, "one", named(MAX)));
        assertTrue(share(2, "one", named(MAX)));
        memory.unshare(1, "one", name(0));
        assertTrue(share(1, "one", named(MAX + 1)));
        assertFalse(share(1, "one", named(MAX + 2)));
    }

    @Test
    void shouldForgetWhatASessionHasShared() {
        share(1, "one", named(1));
        share(2, "one", named(2));
        share(2, "one", named(3));
        memory.sessionEnded(2, "one");
        memory.sessionEnded(3, "never");
        assertEquals(1, memory.size());
        assertEquals(Optional.of(named(1)), find(9, "one", name(1)));
        assertEquals(Optional.empty(), find(9, "one", name(2)));
        for (int i = 10; i < 10 + MAX; i++) {
            assertTrue(share(2, "one", named(i)), "names of an ended session must not count");
        }
    }

    @Test
    void shouldChargeWhatImportersHaveAfterItsOwnersEnd() {
        share(1, "one", named(7));
        find(2, "one", name(7));
        find(3, "one", name(7));
        assertEquals(Map.of(), charges, "the vGPU must not pay while the owner pays");
        memory.sessionEnded(1, "one");
        assertEquals(Map.of("one", 1007L), charges);
        assertEquals(Optional.empty(), find(4, "one", name(7)), "no other session may open the memory");
        assertFalse(share(4, "one", named(7)), "the name must stay taken");
        memory.release(2, "one", name(7));
        assertEquals(Map.of("one", 1007L), charges, "session 3 must still hold the memory");
        memory.sessionEnded(3, "one");
        assertEquals(Map.of("one", 0L), charges);
        assertEquals(0, memory.size());
    }

    @Test
    void shouldChargeWhatImportersHaveAfterItsOwnerFreedIt() {
        share(1, "one", named(7));
        find(2, "one", name(7));
        find(2, "one", name(7));
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
        share(1, "one", named(7));
        find(2, "one", name(7));
        memory.release(2, "one", name(7));
        find(1, "one", name(7)); // the owner's own name
        share(1, "one", named(8));
        find(2, "one", name(8));
        memory.sessionEnded(2, "one");
        share(1, "one", new WorkerMessage.Share(name(9), "ab".repeat(64), 0, 0, 0, false)); // an event
        find(2, "one", name(9));
        memory.sessionEnded(1, "one");
        assertEquals(Map.of(), charges);
        assertEquals(1, memory.size(), "the event that another session uses");
        memory.sessionEnded(2, "one");
        assertEquals(0, memory.size());
    }

    private static WorkerMessage.Share event(int name) {
        return new WorkerMessage.Share(name(name), "00", 0, 0, 0, false);
    }

    private EventPage page(long session, int name) throws IOException {
        return EventPage.map(memory.find(session, "one", name(name)).orElseThrow().descriptor());
    }

    @Test
    void shouldCompleteRecordsOfEndedSessions() throws IOException {
        assertTrue(share(1, "one", event(9)));
        try (EventPage owner = page(1, 9); EventPage second = page(2, 9); EventPage third = page(3, 9)) {
            int first = owner.claim(1);
            int later = second.claim(2);
            memory.sessionEnded(1, "one");
            assertTrue(third.isDone(first));
            assertFalse(third.isDone(later));
            assertEquals(Optional.empty(), find(4, "one", name(9)), "its owner has ended");
            memory.sessionEnded(2, "one");
            assertTrue(third.isDone(later), "also after the owner");
            memory.release(3, "one", name(9));
        }
        assertEquals(0, memory.size());
        assertEquals(0, memory.descriptors());
        assertEquals(Map.of(), charges);
    }

    @Test
    void shouldLimitEventsAsDescriptors() {
        int made = 0;
        while (share(1, "one", event(100 + made))) {
            made++;
        }
        assertEquals(MAX_DESCRIPTORS / 4, made);
        memory.unshare(1, "one", name(100));
        assertTrue(share(1, "one", event(99)));
        memory.sessionEnded(1, "one");
        assertEquals(0, memory.descriptors());
    }

    @Test
    void shouldChargeNoOtherVgpu() {
        share(1, "one", named(7));
        find(2, "two", name(7));
        memory.release(2, "two", name(7));
        find(3, "one", name(7));
        memory.release(2, "one", name(7));
        memory.unshare(2, "one", name(7));
        memory.sessionEnded(2, "two");
        assertEquals(Map.of(), charges);
        memory.sessionEnded(1, "one");
        assertEquals(Map.of("one", 1007L), charges);
    }

    @Test
    void shouldBoundTheImportsOfASession() {
        share(1, "one", named(7));
        for (int i = 0; i < SharedMemory.MAX_IMPORTS; i++) {
            assertTrue(find(2, "one", name(7)).isPresent());
        }
        assertEquals(Optional.empty(), find(2, "one", name(7)));
        assertTrue(find(3, "one", name(7)).isPresent());
        memory.release(2, "one", name(7));
        assertTrue(find(2, "one", name(7)).isPresent());
    }

    private boolean pass(long session, String vgpu, int name) throws IOException {
        return memory.share(session, vgpu, named(name), Descriptors.memory("hawser-test-" + name, 1));
    }

    /** Whether this process has the descriptor of a name. */
    private static boolean isOpen(int name) throws IOException {
        try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
            for (Path one : all.toList()) {
                try {
                    if (Files.readSymbolicLink(one).toString().contains("hawser-test-" + name + " ")) {
                        return true;
                    }
                } catch (NoSuchFileException e) {
                    // closed since the listing
                }
            }
            return false;
        }
    }

    @Test
    void shouldKeepADescriptorAsLongAsItsOwnerSharesIt() throws IOException {
        assertTrue(pass(1, "one", 7));
        assertTrue(pass(1, "one", 8));
        assertTrue(memory.find(2, "one", name(7)).orElseThrow().descriptor() >= 0);
        assertEquals(Optional.empty(), memory.find(2, "two", name(8)), "another vGPU must get no descriptor");
        assertTrue(isOpen(7));
        memory.unshare(1, "one", name(7));
        assertFalse(isOpen(7), "nobody can find the memory any more");
        assertEquals(Map.of("one", 1007L), charges, "the importer must be charged for it");
        assertTrue(isOpen(8));
        memory.sessionEnded(1, "one");
        assertFalse(isOpen(8));
        assertEquals(0, memory.descriptors());
    }

    @Test
    void shouldCloseARefusedDescriptor() throws IOException {
        assertTrue(pass(1, "one", 7));
        assertFalse(pass(2, "one", 7));
        memory.unshare(1, "one", name(7));
        assertFalse(isOpen(7), "the second must have been closed with its refusal");
    }

    @Test
    void shouldBoundTheDescriptorsOfAVgpuAndOfAll() throws IOException {
        int quarter = MAX_DESCRIPTORS / 4;
        for (int i = 0; i < quarter; i++) {
            assertTrue(pass(i, "one", i));
        }
        assertFalse(pass(99, "one", 99));
        assertTrue(share(99, "one", named(99)), "what has no descriptor must not count");
        for (int vgpu = 2; vgpu <= 4; vgpu++) {
            for (int i = 0; i < quarter; i++) {
                assertTrue(pass(100 + vgpu, "vgpu " + vgpu, i));
            }
        }
        assertFalse(pass(200, "five", 1));
        memory.unshare(0, "one", name(0));
        assertTrue(pass(200, "five", 1));
        memory.sessionEnded(200, "five");
        for (int session = 0; session < quarter; session++) {
            memory.sessionEnded(session, "one");
            memory.sessionEnded(100 + session, "vgpu " + session);
        }
        assertEquals(0, memory.descriptors());
    }
}
