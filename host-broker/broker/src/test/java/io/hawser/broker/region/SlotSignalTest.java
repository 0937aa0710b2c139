package io.hawser.broker.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.Futex;
import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.region.RegionLayout;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The listener for calls of guests. The test increments the word through a second mapping, as a guest does. */
class SlotSignalTest {
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    private static final long BYTES = RegionLayout.PAGE_BYTES;
    private static final long LIMIT_S = 20;

    private final Semaphore heard = new Semaphore(0);
    private int descriptor;
    private SharedMemory host;
    private SharedMemory guest;

    @BeforeEach
    void map() throws IOException {
        Path path = Path.of("/dev/shm/hawser-slot-signal-" + ProcessHandle.current().pid());
        descriptor = Descriptors.create(path); // not Descriptors.memory(), which cannot be truncated
        Files.delete(path);
        Descriptors.resize(descriptor, BYTES);
        host = SharedMemory.map(descriptor, BYTES, 0);
        guest = SharedMemory.map(descriptor, BYTES, 0);
    }

    @AfterEach
    void unmap() {
        if (host.memory().scope().isAlive()) {
            host.close();
        }
        guest.close();
        Descriptors.close(descriptor);
    }

    private void call() {
        INT.getAndAdd(guest.memory(), (long) RegionLayout.HEADER_SLOT_SIGNAL_OFFSET, 1);
        Futex.wake(guest.memory(), RegionLayout.HEADER_SLOT_SIGNAL_OFFSET);
    }

    private void awaitHeard() throws InterruptedException {
        assertTrue(heard.tryAcquire(LIMIT_S, TimeUnit.SECONDS), "the listener must hear the signal");
    }

    @Test
    void shouldHearEachCallThatWaitsForTheOneBefore() throws Exception {
        try (SlotSignal signal = new SlotSignal("r", host.memory(), heard::release)) {
            for (int i = 0; i < 300; i++) {
                call();
                awaitHeard();
            }
            assertEquals(0, heard.availablePermits());
        }
    }

    @Test
    void shouldEndWhenTheMemoryIsUnmapped() throws Exception {
        Thread listener;
        try (SlotSignal signal = new SlotSignal("unmapped", host.memory(), heard::release)) {
            listener = thread("hawser-slots-unmapped");
            host.close();
            call();
        }
        assertTrue(listener.join(Duration.ofSeconds(LIMIT_S)), "the thread must end");
    }

    @Test
    void shouldSayOnceThatTheFileWasCut() throws Exception {
        try (SlotSignal signal = new SlotSignal("cut", host.memory(), heard::release)) {
            Thread listener = thread("hawser-slots-cut");
            Descriptors.resize(descriptor, 0);
            awaitHeard();
            assertTrue(listener.join(Duration.ofSeconds(LIMIT_S)), "the thread must end");
            assertEquals(0, heard.availablePermits());
        }
    }

    private static Thread thread(String name) {
        return Thread.getAllStackTraces().keySet().stream().filter(t -> t.getName().equals(name)).findAny()
            .orElseThrow();
    }
}
