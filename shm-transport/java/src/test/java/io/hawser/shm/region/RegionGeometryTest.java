package io.hawser.shm.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;

class RegionGeometryTest {
    private static final int PAGE = RegionLayout.PAGE_BYTES;

    @Test
    void shouldKeepPartsApartInRegionsOfAnySize() {
        Random random = new Random(7);
        for (int i = 0; i < 20_000; i++) {
            int slots = 1 + random.nextInt(RegionLayout.MAX_SLOTS);
            long bytes = (1L << 20 + random.nextInt(17)) + (long) PAGE * random.nextInt(5000);
            RegionGeometry of;
            try {
                of = RegionGeometry.of(bytes, slots);
            } catch (IllegalArgumentException e) {
                assertTrue(bytes < (long) slots * (1 << 20), "slots=" + slots + " bytes=" + bytes);
                continue;
            }
            check(of);
        }
    }

    private static void check(RegionGeometry of) {
        String text = of.toString();
        assertEquals(PAGE, of.slotsOffset());
        assertTrue(of.commandOffset() >= 3 * PAGE, text);
        assertEquals(1, Long.bitCount(of.commandBytes()), text);
        assertEquals(1, Long.bitCount(of.replyBytes()), text);
        assertEquals(1, Long.bitCount(of.chunkBytes()), text);
        assertTrue(of.commandOffset() + of.commandBytes() <= of.replyOffset(), text);
        assertTrue(of.replyOffset() + of.replyBytes() <= of.bulkOffset(), text);
        assertTrue(of.bulkOffset() + of.chunkCount() * of.chunkBytes() <= of.slotStride(), text);
        assertTrue(of.chunkCount() >= 2 && of.chunkCount() <= RegionLayout.MAX_CHUNKS, text);
        assertEquals(0, of.slotStride() % PAGE, text);
        assertTrue(of.slot(of.slotCount() - 1) + of.slotStride() <= of.heapTableOffset(), text);
        assertTrue(of.heapTableOffset() + of.heapBytes() / RegionLayout.GRANULE_BYTES <= of.heapOffset(), text);
        assertEquals(of.regionBytes(), of.heapOffset() + of.heapBytes(), text);
        assertEquals(0, of.heapOffset() % PAGE, text);
        assertTrue(of.heapBytes() > 0, text);
    }

    @Test
    void shouldLeaveAtLeastAThirdOfALargeRegionToTheHeap() {
        RegionGeometry of = RegionGeometry.of(1L << 30, RegionGeometry.DEFAULT_SLOTS);
        assertTrue(of.heapBytes() >= (1L << 30) / 3, of.toString());
        assertEquals(512 << 10, of.chunkBytes());
        RegionGeometry huge = RegionGeometry.of(64L << 30, RegionGeometry.DEFAULT_SLOTS);
        assertTrue(huge.heapBytes() >= 63L << 30, huge.toString());
    }

    @Test
    void shouldRefuseRegionThatIsTooSmallAndNameTheSizeThatWouldDo() {
        String message = assertThrows(IllegalArgumentException.class, () -> RegionGeometry.of(1 << 20, 16))
            .getMessage();
        long smallest = Long.parseLong(message.replaceAll(".*at least (\\d+) bytes.*", "$1"));
        check(RegionGeometry.of(smallest, 16));
        assertThrows(IllegalArgumentException.class, () -> RegionGeometry.of(smallest - PAGE, 16));
        assertThrows(IllegalArgumentException.class, () -> RegionGeometry.of(smallest + 1, 16));
        assertThrows(IllegalArgumentException.class, () -> RegionGeometry.of(1L << 30, 0));
        assertThrows(IllegalArgumentException.class, () -> RegionGeometry.of(1L << 40, RegionLayout.MAX_SLOTS + 1));
    }

    @Test
    void shouldRecogniseOffsetsInHeapAndChunks() {
        RegionGeometry of = RegionGeometry.of(64 << 20, 4);
        assertTrue(of.isInHeap(of.heapOffset(), of.heapBytes()));
        assertTrue(of.isInHeap(of.heapOffset() + of.heapBytes(), 0));
        assertFalse(of.isInHeap(of.heapOffset() - 1, 1));
        assertFalse(of.isInHeap(of.heapOffset(), of.heapBytes() + 1));
        assertFalse(of.isInHeap(of.heapOffset() + 1, -1));
        assertFalse(of.isInHeap(-1, 1));
        assertFalse(of.isInHeap(Long.MIN_VALUE, 1));
        assertFalse(of.isInHeap(of.heapOffset() + 8, Long.MAX_VALUE));
        long chunk = of.chunk(2, 1);
        assertTrue(of.isInChunk(2, 1, chunk, of.chunkBytes()));
        assertFalse(of.isInChunk(2, 1, chunk + 1, of.chunkBytes()));
        assertFalse(of.isInChunk(2, 0, chunk, 1));
        assertFalse(of.isInChunk(1, 1, chunk, 1));
        assertFalse(of.isInChunk(2, of.chunkCount(), chunk, 1));
        assertFalse(of.isInChunk(2, -1, chunk, 1));
    }

    @Test
    void shouldPutEverySlotAndChunkInItsPlace() {
        RegionGeometry of = RegionGeometry.of(64 << 20, 4);
        for (int slot = 0; slot < of.slotCount(); slot++) {
            long start = PAGE + slot * of.slotStride();
            assertEquals(start, of.slot(slot));
            assertEquals(start, of.guestPage(slot));
            assertEquals(start + PAGE, of.hostPage(slot));
            for (int chunk = 0; chunk < of.chunkCount(); chunk++) {
                assertEquals(start + 2 * PAGE + (long) chunk * RegionLayout.CHUNK_STRIDE, of.chunkWord(slot, chunk));
                assertEquals(start + of.bulkOffset() + chunk * of.chunkBytes(), of.chunk(slot, chunk));
            }
        }
        assertEquals(of.chunkCount() * of.chunkBytes(), of.bulkBytes());
        assertThrows(IndexOutOfBoundsException.class, () -> of.slot(-1));
        assertThrows(IndexOutOfBoundsException.class, () -> of.slot(of.slotCount()));
    }

    /** Another chunk, another slot or the rings are next to a chunk. */
    @Test
    void shouldRefuseEveryChunkThatASlotDoesNotHave() {
        RegionGeometry of = RegionGeometry.of(64 << 20, 4);
        int last = of.chunkCount() - 1;
        assertTrue(of.isInChunk(2, 0, of.chunk(2, 0), 1));
        assertTrue(of.isInChunk(2, last, of.chunk(2, last), of.chunkBytes()));
        assertFalse(of.isInChunk(2, -1, of.chunk(2, -1), 1), "the ring before the first");
        assertFalse(of.isInChunk(2, last + 1, of.chunk(2, last + 1), 1), "the slot behind the last");
        assertFalse(of.isInChunk(2, last, of.chunk(2, last) + of.chunkBytes(), 1));
        assertFalse(of.isInChunk(2, last, of.chunk(2, last) - 1, 1));
        assertFalse(of.isInChunk(2, last, of.chunk(2, last), of.chunkBytes() + 1));
        assertFalse(of.isInChunk(2, last, of.chunk(2, last), -1));
    }
}
