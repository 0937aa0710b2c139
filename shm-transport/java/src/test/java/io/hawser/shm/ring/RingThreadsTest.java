package io.hawser.shm.ring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SharedMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Both ends at the same time, and their costs. */
class RingThreadsTest {
    private static final long HEAD = 0;
    private static final long TAIL = 64;
    private static final long BYTES_WAITING = 128;
    private static final long BYTES_SIGNAL = 132;
    private static final long ROOM_WAITING = 192;
    private static final long ROOM_SIGNAL = 196;
    private static final long TURN = 256;
    private static final long RING = 4096;
    private static final long TIMEOUT_NS = TimeUnit.MINUTES.toNanos(1);

    private SharedMemory shared;
    private MemorySegment region;

    @BeforeEach
    void map() throws IOException {
        int fd = Descriptors.memory("hawser-test", 8192);
        shared = SharedMemory.map(fd, 8192, 0);
        region = shared.memory();
        Descriptors.close(fd);
    }

    @AfterEach
    void unmap() {
        shared.close();
    }

    @Test
    void shouldLoseNoWakeUp() throws Exception {
        for (long ringBytes : new long[] {8, 64, 4096}) {
            for (int cpus : new int[] {1, 2}) { // with one processor, no thread spins
                region.fill((byte) 0);
                CompletableFuture<Void> sender = CompletableFuture.runAsync(() -> send(ringBytes, new Spin(cpus)));
                receive(ringBytes, new Spin(cpus));
                sender.get(60, TimeUnit.SECONDS);
            }
        }
    }

    private static final long NUMBERS = 20_000;

    private void send(long ringBytes, Spin spin) {
        RingWriter writer = new RingWriter(region, RING, ringBytes, HEAD, TAIL);
        Sleeper sleeper = new Sleeper(region, ROOM_WAITING, ROOM_SIGNAL);
        Waker waker = new Waker(region, BYTES_WAITING, BYTES_SIGNAL);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment number = arena.allocate(8, 8);
            for (long n = 0; n < NUMBERS; n++) {
                await(spin, sleeper, () -> writer.hasRoom(8) || writer.room() >= 8);
                number.set(ValueLayout.JAVA_LONG, 0, n);
                writer.put(number, 0, 8);
                writer.commit();
                waker.wake();
            }
        } catch (RingCorruptException e) {
            throw new AssertionError(e);
        }
    }

    private void receive(long ringBytes, Spin spin) throws RingCorruptException {
        RingReader reader = new RingReader(region, RING, ringBytes, HEAD, TAIL);
        Sleeper sleeper = new Sleeper(region, BYTES_WAITING, BYTES_SIGNAL);
        Waker waker = new Waker(region, ROOM_WAITING, ROOM_SIGNAL);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment numbers = arena.allocate(ringBytes, 8);
            long expected = 0;
            while (expected < NUMBERS) {
                await(spin, sleeper, () -> reader.available() > 0);
                long taken = reader.takeAvailable(numbers, 0, ringBytes);
                reader.release();
                waker.wake();
                for (long at = 0; at < taken; at += 8) {
                    assertEquals(expected++, numbers.get(ValueLayout.JAVA_LONG, at));
                }
            }
            assertEquals(0, reader.available());
        }
    }

    private interface Condition {
        boolean holds() throws RingCorruptException;
    }

    private static void await(Spin spin, Sleeper sleeper, Condition condition) throws RingCorruptException {
        if (condition.holds()) {
            return;
        }
        spin.begin();
        boolean ready = condition.holds();
        while (!ready && spin.once()) {
            ready = condition.holds();
        }
        boolean slept = !ready;
        while (!ready) {
            int seen = sleeper.prepare();
            ready = condition.holds();
            if (!ready) {
                assertTrue(sleeper.sleep(seen, TIMEOUT_NS), "a wake-up must not be lost");
                ready = condition.holds();
            }
        }
        spin.end(slept);
    }

    @Test
    void shouldWakeAllThatSleepByOneWord() throws Exception {
        int sleepers = 4;
        int turns = 1000;
        Sleeper sleeper = new Sleeper(region, BYTES_WAITING, BYTES_SIGNAL);
        Waker waker = new Waker(region, BYTES_WAITING, BYTES_SIGNAL);
        Spin[] spins = new Spin[sleepers];
        List<CompletableFuture<Void>> threads = new ArrayList<>();
        for (int i = 0; i < sleepers; i++) {
            int me = i;
            spins[i] = new Spin(1);
            CompletableFuture<Void> done = new CompletableFuture<>();
            new Thread(() -> {
                try {
                    for (long mine = me; mine < (long) sleepers * turns; mine += sleepers) {
                        long turn = mine;
                        await(spins[me], sleeper, () -> (long) Words.I64.getAcquire(region, TURN) == turn);
                        Words.I64.setRelease(region, TURN, mine + 1);
                        waker.wake();
                    }
                    done.complete(null);
                } catch (RingCorruptException | RuntimeException | AssertionError e) {
                    done.completeExceptionally(e);
                }
            }).start();
            threads.add(done);
        }
        for (CompletableFuture<Void> thread : threads) {
            thread.get(120, TimeUnit.SECONDS);
        }
        assertEquals((long) sleepers * turns, region.get(ValueLayout.JAVA_LONG, TURN));
    }

    @Test
    void shouldAskForAWakeUpOnce() {
        Sleeper sleeper = new Sleeper(region, BYTES_WAITING, BYTES_SIGNAL);
        Waker waker = new Waker(region, BYTES_WAITING, BYTES_SIGNAL);
        assertFalse(waker.takeWaiting());
        assertEquals(0, sleeper.prepare());
        assertTrue(waker.takeWaiting());
        assertFalse(waker.takeWaiting());
        waker.wake();
        assertEquals(0, sleeper.prepare());
        waker.wake();
        assertEquals(1, region.get(ValueLayout.JAVA_INT, BYTES_SIGNAL));
        assertEquals(0, region.get(ValueLayout.JAVA_INT, BYTES_WAITING));
        assertTrue(sleeper.sleep(0, TIMEOUT_NS)); // the count has changed: does not sleep
        assertFalse(sleeper.sleep(1, 1000));
    }

    @Test
    void shouldSpinLessWhileWaitsAreLongAndTryAgainNowAndThen() {
        Spin spin = new Spin(2);
        final int limit = spin.budgetNs();
        int tries = 0;
        for (int i = 1; i <= 64; i++) {
            spin.begin();
            while (spin.once()) {
                Thread.onSpinWait();
            }
            spin.end(true);
            tries += spin.budgetNs() >= limit ? 1 : 0;
            if (i == 8) {
                assertEquals(0, spin.budgetNs());
                assertFalse(spin.once());
            }
        }
        assertEquals(4, tries);
        spin.begin();
        assertTrue(spin.once());
        spin.end(false); // the last attempt was worth its cost
        assertEquals(limit, spin.budgetNs());
        spin.begin();
        spin.end(true);
        int half = spin.budgetNs();
        assertEquals(limit / 2, half);
        spin.begin();
        spin.end(false); // without any wait, it learns nothing
        assertEquals(half, spin.budgetNs());
        spin.begin();
        assertTrue(spin.once());
        spin.end(false);
        assertEquals(limit, spin.budgetNs());
        Spin alone = new Spin(1);
        for (int i = 0; i < 32; i++) {
            alone.begin();
            assertFalse(alone.once());
            alone.end(true);
        }
    }

    @Test
    void shouldAllocateNothing() throws RingCorruptException {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        RingWriter writer = new RingWriter(region, RING, 4096, HEAD, TAIL);
        RingReader reader = new RingReader(region, RING, 4096, HEAD, TAIL);
        Waker waker = new Waker(region, BYTES_WAITING, BYTES_SIGNAL);
        Sleeper sleeper = new Sleeper(region, BYTES_WAITING, BYTES_SIGNAL);
        Spin spin = new Spin(2);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(4096, 8);
            exchange(writer, reader, waker, sleeper, spin, memory, 20_000);
            long before = threads.getCurrentThreadAllocatedBytes();
            exchange(writer, reader, waker, sleeper, spin, memory, 20_000);
            long allocated = threads.getCurrentThreadAllocatedBytes() - before;
            // Other work of the JVM may allocate, but one object of 16 bytes for each record would be twenty times this
            // limit.
            assertTrue(allocated < 16_000, "allocated=" + allocated);
        }
    }

    private static void exchange(RingWriter writer, RingReader reader, Waker waker, Sleeper sleeper, Spin spin,
        MemorySegment memory, int records) throws RingCorruptException {
        for (int i = 0; i < records; i++) {
            spin.begin();
            spin.once();
            if (i % 100 == 0) {
                sleeper.prepare();
            }
            long bytes = 32 + i % 60 * 8L;
            if (!writer.hasRoom(bytes)) {
                writer.room();
            }
            writer.put(memory, 0, bytes);
            writer.commit();
            waker.wake();
            assertEquals(bytes, reader.takeAvailable(memory, 0, 4096));
            reader.release();
            spin.end(false);
        }
    }
}
