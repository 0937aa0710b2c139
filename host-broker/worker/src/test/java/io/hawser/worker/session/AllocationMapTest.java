package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class AllocationMapTest {
    private final Handle context = new Handle(HandleKind.CONTEXT, 1, 1, null, null);
    private final Handle module = new Handle(HandleKind.MODULE, 2, 2, context, null);
    private final AllocationMap map = new AllocationMap();

    @Test
    void shouldContainOnlyCopiesInsideOneRange() {
        assertTrue(map.add(1000, 100, context));
        assertTrue(map.add(1100, 50, context));
        assertTrue(map.contains(1000, 100));
        assertTrue(map.contains(1099, 1));
        assertFalse(map.contains(999, 1));
        assertFalse(map.contains(1000, 101), "a copy must not continue into a neighbour");
        assertFalse(map.contains(1150, 1));
        assertTrue(map.contains(7, 0));
    }

    @Test
    void shouldGoOnFromMappingToMapping() {
        Handle memory = new Handle(HandleKind.MEM_ALLOCATION, 3, 3, null, null);
        Handle other = new Handle(HandleKind.MEM_ALLOCATION, 4, 4, null, null);
        assertTrue(map.add(1000, 100, memory));
        assertTrue(map.add(1100, 100, other));
        assertTrue(map.add(1200, 100, memory));
        assertTrue(map.add(1300, 100, context));
        assertTrue(map.add(1500, 100, memory));
        assertTrue(map.contains(1000, 300));
        assertTrue(map.contains(1150, 100));
        assertFalse(map.contains(1000, 301), "an allocation is not a mapping");
        assertFalse(map.contains(1250, 150));
        assertFalse(map.contains(1550, 51));
        assertFalse(map.contains(1050, -1));
        assertFalse(map.contains(1050, Long.MAX_VALUE));
        assertEquals(100, map.allocatedBytes(), "memory counts when created, not when mapped");
        assertEquals(-1, map.remove(1000));
        map.removeMapping(1100);
        assertFalse(map.contains(1000, 101));
        assertThrows(IllegalArgumentException.class, () -> map.removeMapping(1300));
    }

    @Test
    void shouldRemoveOnlyRangesOfSameKind() {
        Handle memory = new Handle(HandleKind.MEM_ALLOCATION, 3, 3, null, null);
        assertTrue(map.add(1000, 100, context));
        assertTrue(map.add(2000, 100, null)); // the guest's own memory
        assertTrue(map.add(3000, 100, memory));
        for (long address : new long[] {0, 1000, 1050, 2001, 2099, 2100, 3000, 3050}) {
            assertThrows(IllegalArgumentException.class, () -> map.removeHost(address), "host " + address);
        }
        for (long address : new long[] {0, 1000, 1050, 2000, 2050, 3001, 3099, 3100}) {
            assertThrows(IllegalArgumentException.class, () -> map.removeMapping(address), "mapping " + address);
        }
        for (long address : new long[] {0, 999, 1001, 2000, 3000}) {
            assertEquals(-1, map.remove(address), "allocation " + address);
        }
        map.removeHost(2000);
        map.removeMapping(3000);
        assertEquals(100, map.remove(1000));
        assertFalse(map.contains(1000, 1) || map.contains(2000, 1) || map.contains(3000, 1));
    }

    @Test
    void shouldKnowAnAllocationByItsFirstByteOnly() {
        assertTrue(map.add(1000, 100, context));
        assertEquals(100, map.lengthAt(1000));
        assertEquals(context, map.ownerAt(1000));
        for (long address : new long[] {0, 999, 1001, 1099, 1100, -1}) {
            assertEquals(-1, map.lengthAt(address));
            assertNull(map.ownerAt(address));
            assertNull(map.chargeAt(address));
        }
        assertThrows(IllegalArgumentException.class, () -> map.add(5000, 0, context));
        assertThrows(IllegalArgumentException.class, () -> map.add(5000, -1, context));
        assertTrue(map.add(5000, 1, context));
    }

    @Test
    void shouldRemoveRangesOfModuleOrContext() {
        assertTrue(map.add(1000, 100, context));
        assertTrue(map.add(2000, 100, module));
        assertTrue(map.add(3000, 100, module));
        assertTrue(map.add(4000, 100, null));
        long removals = map.removals();
        for (long address : new long[] {0, 1000, 2001, 2099, 4000}) {
            map.removeVariable(address); // no variable of a module begins there
        }
        assertEquals(removals, map.removals());
        map.removeVariable(2000);
        assertFalse(map.contains(2000, 1));
        assertTrue(map.contains(3000, 100));
        map.removeOwner(module);
        assertFalse(map.contains(3000, 1));
        assertTrue(map.contains(1000, 100) && map.contains(4000, 100));
        map.removeOwner(context);
        assertFalse(map.contains(1000, 1));
        assertEquals(0, map.allocatedBytes());
        assertTrue(map.contains(4000, 100), "the guest's own memory has no owner");
        assertEquals(removals + 3, map.removals());
    }

    @Test
    void shouldRefuseLengthsThatWrapAround() {
        assertTrue(map.add(1000, 100, context));
        assertFalse(map.contains(1050, -1));
        assertFalse(map.contains(1050, Long.MAX_VALUE));
        assertFalse(map.contains(1050, Long.MIN_VALUE));
    }

    @Test
    void shouldOrderAddressesAsUnsigned() {
        assertTrue(map.add(0x8000_0000_0000_0000L, 16, context));
        assertTrue(map.add(0x7000_0000_0000_0000L, 16, context));
        assertTrue(map.contains(0x8000_0000_0000_0008L, 8));
        assertTrue(map.contains(0x7000_0000_0000_0000L, 16));
        assertFalse(map.contains(0x7fff_ffff_ffff_ffffL, 1));
    }

    @Test
    void shouldRefuseOverlap() {
        assertTrue(map.add(1000, 100, context));
        assertFalse(map.add(1099, 1, context));
        assertFalse(map.add(900, 101, context));
        assertFalse(map.add(1000, 100, module));
        assertTrue(map.add(900, 100, context));
    }

    @Test
    void shouldNotFreeVariableOfModule() {
        assertTrue(map.add(1000, 100, module));
        assertEquals(-1, map.remove(1000));
        assertNull(map.ownerAt(1000));
        assertEquals(0, map.allocatedBytes());
        map.removeOwner(module);
        assertFalse(map.contains(1000, 1));
    }

    @Test
    void shouldAgreeWithTreeUnderRandomUse() {
        Random random = new Random(1);
        TreeMap<Long, Long> expected = new TreeMap<>();
        long bytes = 0;
        for (int i = 0; i < 20_000; i++) {
            long address = random.nextInt(4000) * 16L;
            if (random.nextBoolean()) {
                long length = 1L + random.nextInt(64);
                Long below = expected.floorKey(address + length - 1);
                boolean free = below == null || below + expected.get(below) <= address;
                assertEquals(free, map.add(address, length, context));
                if (free) {
                    expected.put(address, length);
                    bytes += length;
                }
            } else {
                Long length = expected.remove(address);
                assertSame(length == null ? null : context, map.ownerAt(address));
                assertEquals(length == null ? -1 : length, map.remove(address));
                bytes -= length == null ? 0 : length;
            }
            assertEquals(bytes, map.allocatedBytes());
        }
    }
}
