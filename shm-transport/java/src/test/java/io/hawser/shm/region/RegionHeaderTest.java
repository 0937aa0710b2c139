package io.hawser.shm.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class RegionHeaderTest {
    private static final RegionGeometry GEOMETRY = RegionGeometry.of(8 << 20, 2);

    @Test
    void shouldReadWhatWasFormatted() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment region = arena.allocate(GEOMETRY.regionBytes(), 4096);
            assertNull(RegionHeader.read(region));
            RegionHeader header = new RegionHeader(7, -1, 1, 3, "vgpu-ä", GEOMETRY);
            header.format(region);
            assertEquals(header, RegionHeader.read(region));
        }
    }

    @Test
    void shouldClearSlotsAndHeapTableOfTheRegionBefore() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment region = arena.allocate(GEOMETRY.regionBytes(), 4096).fill((byte) 0xee);
            new RegionHeader(1, 2, 1, 0, "a", GEOMETRY).format(region);
            for (int slot = 0; slot < GEOMETRY.slotCount(); slot++) {
                for (long at = 0; at < 3L * RegionLayout.PAGE_BYTES; at++) {
                    assertEquals(0, region.get(ValueLayout.JAVA_BYTE, GEOMETRY.slot(slot) + at));
                }
            }
            for (long at = GEOMETRY.heapTableOffset(); at < GEOMETRY.heapOffset(); at++) {
                assertEquals(0, region.get(ValueLayout.JAVA_BYTE, at));
            }
            for (long at = RegionLayout.HEADER_HOST_BEAT_OFFSET; at < RegionLayout.PAGE_BYTES; at++) {
                assertEquals(0, region.get(ValueLayout.JAVA_BYTE, at));
            }
            assertEquals((byte) 0xee, region.get(ValueLayout.JAVA_BYTE, GEOMETRY.heapOffset()));
        }
    }

    @Test
    void shouldKeepTheHeapTableOfARegionThatWasDividedTheSameWay() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment region = arena.allocate(GEOMETRY.regionBytes(), 4096);
            new RegionHeader(1, 2, 1, 0, "a", GEOMETRY).format(region);
            region.set(ValueLayout.JAVA_BYTE, GEOMETRY.heapTableOffset(), (byte) 7);
            new RegionHeader(2, 2, 1, 0, "a", GEOMETRY).format(region);
            assertEquals(7, region.get(ValueLayout.JAVA_BYTE, GEOMETRY.heapTableOffset()));
            new RegionHeader(3, 2, 1, 0, "a", RegionGeometry.of(GEOMETRY.regionBytes(), 1)).format(region);
            new RegionHeader(4, 2, 1, 0, "a", GEOMETRY).format(region);
            assertEquals(0, region.get(ValueLayout.JAVA_BYTE, GEOMETRY.heapTableOffset()), "divided otherwise");
        }
    }

    @Test
    void shouldClearOnlyTheSlotThatIsFreed() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment region = arena.allocate(GEOMETRY.regionBytes(), 4096).fill((byte) 0xee);
            RegionHeader.free(region, GEOMETRY, 1);
            for (long at = 0; at < 3L * RegionLayout.PAGE_BYTES; at++) {
                assertEquals(0, region.get(ValueLayout.JAVA_BYTE, GEOMETRY.slot(1) + at));
            }
            assertEquals((byte) 0xee, region.get(ValueLayout.JAVA_BYTE, GEOMETRY.slot(1) - 1));
            assertEquals((byte) 0xee, region.get(ValueLayout.JAVA_BYTE,
                GEOMETRY.slot(1) + 3L * RegionLayout.PAGE_BYTES));
        }
    }

    @Test
    void shouldCutATextBetweenCharacters() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment region = arena.allocate(16).fill((byte) 0xee);
            RegionHeader.text(region, 4, 8, "123456ä");
            assertEquals("123456", RegionHeader.text(region, 4, 8));
            assertEquals(0, region.get(ValueLayout.JAVA_BYTE, 11));
            assertEquals((byte) 0xee, region.get(ValueLayout.JAVA_BYTE, 12));
            RegionHeader.text(region, 4, 8, "1234567");
            assertEquals("1234567", RegionHeader.text(region, 4, 8));
            region.asSlice(4, 8).fill((byte) 'x');
            assertEquals("xxxxxxxx", RegionHeader.text(region, 4, 8));
        }
    }

    @Test
    void shouldRefuseAnotherLengthOrNoEpoch() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment region = arena.allocate(GEOMETRY.regionBytes(), 4096);
            assertThrows(IllegalArgumentException.class,
                () -> new RegionHeader(0, 2, 1, 0, "a", GEOMETRY).format(region));
            assertThrows(IllegalArgumentException.class,
                () -> new RegionHeader(1, 2, 1, 0, "a", RegionGeometry.of(4 << 20, 2)).format(region));
        }
    }
}
