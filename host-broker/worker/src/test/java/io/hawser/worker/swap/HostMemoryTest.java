package io.hawser.worker.swap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HostMemoryTest {
    private static final long BLOCK = HostMemory.BLOCK_BYTES;
    private static final int STEPS = 20_000;
    private static final int LIMIT_S = 30;

    private long nextAddress = BLOCK;

    /** Addresses without memory. */
    private MemorySegment allocate(long bytes) {
        nextAddress += 2 * bytes;
        return MemorySegment.ofAddress(nextAddress).reinterpret(bytes);
    }

    private static long length(List<MemorySegment> pieces) {
        return pieces.stream().mapToLong(MemorySegment::byteSize).sum();
    }

    @Test
    void shouldGrowToItsLimit() {
        HostMemory memory = new HostMemory(this::allocate, 3 * BLOCK - 1);
        assertEquals(BLOCK + 1, length(memory.take(BLOCK + 1)));
        assertEquals(2 * BLOCK, memory.allocatedBytes());
        assertNull(memory.take(BLOCK));
        assertEquals(BLOCK - 1, length(memory.take(BLOCK - 1)), "the refused request has taken nothing");
        assertFalse(memory.grow(Long.MAX_VALUE));
    }

    @Test
    void shouldGrowToTheLimitOfACaller() {
        HostMemory memory = new HostMemory(this::allocate, 3 * BLOCK);
        assertTrue(memory.grow(BLOCK));
        assertFalse(memory.grow(2 * BLOCK - 1));
        assertEquals(BLOCK, memory.allocatedBytes());
    }

    /** Threads that allocate at the same time must not exceed the limit together, and a request waits for theirs. */
    @Test
    void shouldWaitForTheBlocksOfOtherThreads() throws Exception {
        CountDownLatch allocating = new CountDownLatch(2);
        CountDownLatch gate = new CountDownLatch(1);
        HostMemory memory = new HostMemory(bytes -> {
            allocating.countDown();
            await(gate);
            synchronized (this) {
                return allocate(bytes);
            }
        }, 2 * BLOCK);
        try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
            List<Future<Boolean>> grown = List.of(threads.submit(() -> memory.grow(2 * BLOCK)),
                threads.submit(() -> memory.grow(2 * BLOCK)));
            await(allocating);
            assertFalse(memory.grow(Long.MAX_VALUE), "the two blocks reach the limit");
            Future<List<MemorySegment>> taken = threads.submit(() -> memory.take(2 * BLOCK));
            gate.countDown();
            assertEquals(2 * BLOCK, length(taken.get()));
            assertTrue(grown.get(0).get());
            assertTrue(grown.get(1).get());
        }
        assertNull(memory.take(1));
    }

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(LIMIT_S, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void shouldRefuseWhenTheSystemDoes() {
        HostMemory none = new HostMemory(bytes -> null, 10 * BLOCK);
        assertNull(none.take(1));
        HostMemory full = new HostMemory(bytes -> {
            throw new OutOfMemoryError("test");
        }, 10 * BLOCK);
        assertNull(full.take(1));
    }

    @Test
    void shouldBeWholeAgainWhenNothingIsInUse() {
        HostMemory memory = new HostMemory(this::allocate, BLOCK);
        List<List<MemorySegment>> taken = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            taken.add(memory.take(BLOCK / 8));
        }
        taken.forEach(memory::give);
        assertEquals(1, memory.take(BLOCK).size());
    }

    /** No byte is given out twice, and none is lost. */
    @Test
    void shouldNeverGiveAByteTwice() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        HostMemory memory = new HostMemory(this::allocate, 4 * BLOCK);
        List<List<MemorySegment>> taken = new ArrayList<>();
        long used = 0;
        for (int step = 0; step < STEPS; step++) {
            if (!taken.isEmpty() && random.nextBoolean()) {
                List<MemorySegment> given = taken.remove(random.nextInt(taken.size()));
                used -= length(given);
                memory.give(given);
                continue;
            }
            long bytes = 1 + random.nextLong(BLOCK);
            List<MemorySegment> pieces = memory.take(bytes);
            long usedNow = used;
            assertEquals(used + bytes <= 4 * BLOCK, pieces != null, () -> "seed=" + seed + " used=" + usedNow);
            if (pieces != null) {
                assertEquals(bytes, length(pieces), () -> "seed=" + seed);
                for (MemorySegment piece : pieces) {
                    assertTrue(taken.stream().flatMap(List::stream).allMatch(other -> other.address() >= piece.address()
                        + piece.byteSize() || piece.address() >= other.address() + other.byteSize()),
                        () -> "seed=" + seed);
                }
                taken.add(pieces);
                used += bytes;
            }
        }
    }
}
