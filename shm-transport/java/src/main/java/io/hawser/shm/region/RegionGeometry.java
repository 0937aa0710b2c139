package io.hawser.shm.region;

/**
 * The places of the parts of a region of a given size. Each side computes the same numbers, so that neither needs to
 * read them from memory that a guest can write. Offsets and lengths in bytes.
 *
 * @param regionBytes length of the whole region, a multiple of {@link RegionLayout#PAGE_BYTES}.
 * @param slotCount number of slots, 1..{@link RegionLayout#MAX_SLOTS}.
 * @param slotsOffset offset of slot 0 in the region.
 * @param slotStride distance from a slot to the next.
 * @param commandOffset offset of the command ring in a slot.
 * @param commandBytes length of the command ring, a power of two.
 * @param replyOffset offset of the reply ring in a slot.
 * @param replyBytes length of the reply ring, a power of two.
 * @param bulkOffset offset of the bulk area in a slot.
 * @param chunkCount number of chunks in the bulk area.
 * @param chunkBytes length of each chunk, a power of two.
 * @param heapTableOffset offset of the heap's table in the region.
 * @param heapOffset offset of the heap in the region.
 * @param heapBytes length of the heap, a multiple of {@link RegionLayout#GRANULE_BYTES}.
 */
public record RegionGeometry(long regionBytes, int slotCount, long slotsOffset, long slotStride, long commandOffset,
    long commandBytes, long replyOffset, long replyBytes, long bulkOffset, int chunkCount, long chunkBytes,
    long heapTableOffset, long heapOffset, long heapBytes) {

    /** Number of slots of a region without a configured number. */
    public static final int DEFAULT_SLOTS = 16;

    private static final long RING_BYTES = 256 << 10; // a burst of 2,000 launches
    private static final int SLOT_PAGES = 3;
    private static final long SMALLEST_CHUNK_BYTES = 64 << 10;
    private static final long LARGEST_CHUNK_BYTES = 512 << 10;
    private static final int SMALLEST_CHUNK_COUNT = 4;
    private static final int HEAP_SHARE = 2; // the bulk areas take at most 1 / HEAP_SHARE of the region

    /**
     * Divides a region.
     *
     * @param regionBytes length of the region.
     * @param slotCount maximum number of guest processes at the same time.
     * @throws IllegalArgumentException if the slots do not fit; the message gives the required size.
     */
    public static RegionGeometry of(long regionBytes, int slotCount) {
        if (slotCount < 1 || slotCount > RegionLayout.MAX_SLOTS) {
            throw new IllegalArgumentException("a region must have 1.." + RegionLayout.MAX_SLOTS + " slots: slotCount="
                + slotCount);
        }
        long page = RegionLayout.PAGE_BYTES;
        long rings = SLOT_PAGES * page + 2 * RING_BYTES;
        long smallest = page + slotCount * (rings + SMALLEST_CHUNK_COUNT * SMALLEST_CHUNK_BYTES) + 2 * page;
        if (regionBytes < smallest || regionBytes % page != 0) {
            throw new IllegalArgumentException("a region of " + slotCount + " slots must be a multiple of " + page
                + " and at least " + smallest + " bytes: regionBytes=" + regionBytes);
        }
        long bulkBytes = Math.max(SMALLEST_CHUNK_COUNT * SMALLEST_CHUNK_BYTES,
            Math.min(RegionLayout.MAX_CHUNKS * LARGEST_CHUNK_BYTES,
                Long.highestOneBit(regionBytes / HEAP_SHARE / slotCount)));
        long chunkBytes = Math.clamp(Long.highestOneBit(bulkBytes / RegionLayout.MAX_CHUNKS), SMALLEST_CHUNK_BYTES,
            LARGEST_CHUNK_BYTES);
        int chunkCount = (int) (bulkBytes / chunkBytes);
        if (page + slotCount * (rings + bulkBytes) + 2 * page > regionBytes) {
            bulkBytes = SMALLEST_CHUNK_COUNT * SMALLEST_CHUNK_BYTES;
            chunkBytes = SMALLEST_CHUNK_BYTES;
            chunkCount = SMALLEST_CHUNK_COUNT;
        }
        long stride = rings + bulkBytes;
        long tableOffset = page + slotCount * stride;
        // The table has one byte for each granule, so one page of it covers 4,096 granules.
        long pages = (regionBytes - tableOffset) / page;
        long tablePages = (pages + RegionLayout.GRANULE_BYTES) / (RegionLayout.GRANULE_BYTES + 1);
        long heapOffset = tableOffset + tablePages * page;
        return new RegionGeometry(regionBytes, slotCount, page, stride, SLOT_PAGES * page, RING_BYTES,
            SLOT_PAGES * page + RING_BYTES, RING_BYTES, rings, chunkCount, chunkBytes, tableOffset, heapOffset,
            regionBytes - heapOffset);
    }

    /** Offset of a slot in the region. */
    public long slot(int slot) {
        if (slot < 0 || slot >= slotCount) {
            throw new IndexOutOfBoundsException("a slot must be within 0.." + (slotCount - 1) + ": slot=" + slot);
        }
        return slotsOffset + slot * slotStride;
    }

    /** Offset of a slot's guest page in the region. */
    public long guestPage(int slot) {
        return slot(slot);
    }

    /** Offset of a slot's host page in the region. */
    public long hostPage(int slot) {
        return slot(slot) + RegionLayout.PAGE_BYTES;
    }

    /** Offset in the region of a slot's chunk word. */
    public long chunkWord(int slot, int chunk) {
        return slot(slot) + 2L * RegionLayout.PAGE_BYTES + (long) chunk * RegionLayout.CHUNK_STRIDE;
    }

    /** Offset in the region of a slot's chunk. */
    public long chunk(int slot, int chunk) {
        return slot(slot) + bulkOffset + chunk * chunkBytes;
    }

    /** Length of a slot's bulk area, which consists of its chunks. */
    public long bulkBytes() {
        return chunkCount * chunkBytes;
    }

    /** Whether a range lies in the heap; both numbers are unsigned. */
    public boolean isInHeap(long offset, long bytes) {
        return isInside(offset, bytes, heapOffset, heapBytes);
    }

    /** Whether a range lies in a slot's chunk. */
    public boolean isInChunk(int slot, int chunk, long offset, long bytes) {
        return chunk >= 0 && chunk < chunkCount && isInside(offset, bytes, chunk(slot, chunk), chunkBytes);
    }

    private static boolean isInside(long offset, long bytes, long areaOffset, long areaBytes) {
        long start = offset - areaOffset;
        return start >= 0 && start <= areaBytes && bytes >= 0 && bytes <= areaBytes - start && offset >= 0;
    }
}
