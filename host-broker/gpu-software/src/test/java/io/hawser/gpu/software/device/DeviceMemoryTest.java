package io.hawser.gpu.software.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class DeviceMemoryTest {
    private static final long ARENA_BYTES = 4 << 20;

    @Test
    void shouldKeepAllocationsApartOverManyRandomOperations() {
        Random random = new Random(7);
        try (DeviceMemory memory = new DeviceMemory(ARENA_BYTES)) {
            TreeMap<Long, Long> live = new TreeMap<>();
            for (int step = 0; step < 20_000; step++) {
                if (live.isEmpty() || random.nextInt(5) < 3) {
                    long bytes = 1L + random.nextInt(random.nextBoolean() ? 600 : 200_000);
                    long address = memory.allocate(bytes);
                    if (address != 0) {
                        checkApart(live, address, bytes);
                        assertTrue(memory.arena().isAllocated(address, bytes));
                        live.put(address, memory.sizeOf(address));
                    }
                } else {
                    Long address = live.ceilingKey(memory.arena().base() + random.nextLong(ARENA_BYTES));
                    address = address == null ? live.firstKey() : address;
                    assertTrue(memory.free(address));
                    assertFalse(memory.arena().isAllocated(address, 1));
                    live.remove(address);
                }
                long used = live.values().stream().mapToLong(Long::longValue).sum();
                assertEquals(ARENA_BYTES - used, memory.freeBytes());
            }
            live.keySet().forEach(memory::free);
            assertEquals(0, memory.allocations());
            assertEquals(1, memory.freeBlocks());
            assertNotEquals(0, memory.allocate(ARENA_BYTES));
        }
    }

    private static void checkApart(TreeMap<Long, Long> live, long address, long bytes) {
        assertEquals(0, address % 512);
        Map.Entry<Long, Long> before = live.floorEntry(address);
        Map.Entry<Long, Long> after = live.ceilingEntry(address);
        assertTrue(before == null || before.getKey() + before.getValue() <= address);
        assertTrue(after == null || address + bytes <= after.getKey());
    }

    @Test
    void shouldRefuseToFreeWhatIsNotTheStartOfAnAllocation() {
        try (DeviceMemory memory = new DeviceMemory(ARENA_BYTES)) {
            long address = memory.allocate(4096);
            assertFalse(memory.free(address + 512));
            assertFalse(memory.free(0));
            assertTrue(memory.free(address));
            assertFalse(memory.free(address));
        }
    }

    @Test
    void shouldAnswerZeroWhenNoBlockIsLargeEnough() {
        try (DeviceMemory memory = new DeviceMemory(ARENA_BYTES)) {
            assertEquals(0, memory.allocate(ARENA_BYTES + 1));
            assertEquals(0, memory.allocate(Long.MAX_VALUE));
            assertNotEquals(0, memory.allocate(ARENA_BYTES));
            assertEquals(0, memory.allocate(1));
        }
    }
}
