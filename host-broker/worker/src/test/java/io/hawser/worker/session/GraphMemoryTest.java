package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class GraphMemoryTest {
    private static final int SIZE = 200; // number of addresses that the random test uses

    private final Handle context = new Handle(HandleKind.CONTEXT, 1, 1, null, null);
    private final Handle another = new Handle(HandleKind.CONTEXT, 2, 2, null, null);
    private final MemoryQuota quota = MemoryQuota.alone(1, 1 << 20);
    private final MemoryQuota.KeptMemory store = quota.addKeeper(new Nothing());
    private final AllocationMap allocations = new AllocationMap();
    private final GraphMemory memory = new GraphMemory(allocations);

    /** A keeper whose driver keeps no memory, so that only claims count. */
    private static final class Nothing implements MemoryQuota.Keeper {
        @Override
        public long reservedBytes(int device) {
            return 0;
        }

        @Override
        public void trim(int device) {
        }
    }

    private GraphMemory.Block add(long address, long bytes) {
        return memory.add(address, bytes, context, store.claim(0, bytes));
    }

    @Test
    void shouldCountBytesOfOverlappingBlocksOnce() {
        GraphMemory.Block whole = add(1000, 100);
        assertEquals(0, memory.newBytes(1050, 50));
        assertEquals(30, memory.newBytes(1070, 60));
        GraphMemory.Block half = add(1050, 50);
        GraphMemory.Block again = add(1000, 100);
        assertEquals(100, quota.heldBytes());
        GraphMemory.Block more = add(1070, 60);
        assertEquals(130, quota.heldBytes());
        assertTrue(allocations.contains(1000, 130));
        memory.release(whole);
        assertEquals(130, quota.heldBytes(), "another block has the same");
        memory.release(again);
        assertEquals(80, quota.heldBytes());
        assertFalse(allocations.contains(1049, 1));
        memory.release(half);
        assertEquals(60, quota.heldBytes());
        memory.release(more);
        assertEquals(0, quota.heldBytes());
        assertFalse(allocations.contains(1070, 1));
    }

    @Test
    void shouldMergeAndSplitRanges() {
        GraphMemory.Block left = add(1000, 100);
        GraphMemory.Block right = add(1200, 100);
        assertFalse(allocations.contains(1099, 102));
        GraphMemory.Block bridge = add(1050, 200);
        assertTrue(allocations.contains(1000, 300));
        assertEquals(300, quota.heldBytes());
        memory.release(bridge);
        assertTrue(allocations.contains(1000, 100));
        assertTrue(allocations.contains(1200, 100));
        assertFalse(allocations.contains(1100, 1));
        assertEquals(200, quota.heldBytes());
        memory.release(left);
        memory.release(right);
        assertEquals(0, quota.heldBytes());
    }

    @Test
    void shouldKeepMemoryThatALaunchLeft() {
        GraphMemory.Block first = add(1000, 100);
        GraphMemory.Block second = add(1000, 50);
        assertSame(second, memory.at(1000), "the newest");
        memory.allocated(first);
        memory.allocated(second);
        memory.freed(first);
        memory.release(first);
        memory.release(second);
        assertEquals(50, quota.heldBytes());
        assertSame(second, memory.at(1000));
        memory.freed(second);
        assertEquals(0, quota.heldBytes());
        assertNull(memory.at(1000));
        memory.freed(second);
        assertEquals(0, quota.heldBytes(), "once");
    }

    @Test
    void shouldRefuseMemoryInUseAndChangeNothing() {
        assertNotNull(add(1000, 100));
        assertNull(memory.add(1050, 10, another, store.claim(0, 0)), "of another context");
        assertTrue(allocations.add(1100, 10, context));
        assertNull(memory.add(1090, 20, context, store.claim(0, 20)), "an allocation");
        assertTrue(allocations.contains(1000, 100));
        assertFalse(allocations.contains(1000, 101));
    }

    /** By the time a graph's memory is released, an allocation of another context may lie at its address. */
    @Test
    void shouldDropBlocksOfEndedContext() {
        GraphMemory.Block block = add(1000, 100);
        GraphMemory.Block live = add(1000, 100);
        memory.allocated(live);
        allocations.removeOwner(context);
        memory.forget(context);
        assertEquals(0, quota.heldBytes());
        assertNull(memory.at(1000));
        assertEquals(100, memory.newBytes(1000, 100));
        assertTrue(allocations.add(1000, 50, another));
        memory.release(block);
        memory.freed(live);
        memory.release(live);
        assertTrue(allocations.contains(1000, 50));
        assertEquals(0, quota.heldBytes());
    }

    @Test
    void shouldAgreeWithASimpleModel() {
        Random random = new Random(7);
        List<GraphMemory.Block> blocks = new ArrayList<>();
        List<int[]> spans = new ArrayList<>();
        for (int step = 0; step < 20_000; step++) {
            if (blocks.isEmpty() || random.nextInt(20) < 10 && blocks.size() < 30) {
                int start = 1 + random.nextInt(SIZE - 20);
                int bytes = 1 + random.nextInt(20);
                blocks.add(add(start, bytes));
                spans.add(new int[] {start, bytes});
            } else {
                int gone = random.nextInt(blocks.size());
                memory.release(blocks.remove(gone));
                spans.remove(gone);
            }
            boolean[] held = new boolean[SIZE + 1];
            spans.forEach(span -> Arrays.fill(held, span[0], span[0] + span[1], true));
            int count = 0;
            for (int at = 1; at <= SIZE; at++) {
                assertEquals(held[at], allocations.contains(at, 1), "address " + at + " after step " + step);
                count += held[at] ? 1 : 0;
            }
            assertEquals(count, quota.heldBytes(), "after step " + step);
            spans.forEach(span -> assertTrue(allocations.contains(span[0], span[1])));
        }
    }
}
