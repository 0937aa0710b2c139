package io.hawser.shm.region;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * The header at the start of a region. The host writes it and never reads it back; a guest copies it, checks the copy
 * and uses only the copy. Numbers as in {@link RegionLayout}.
 *
 * @param epoch random number, never 0; each format chooses another one.
 * @param descriptionHash hash of the workers' API description.
 * @param protocolVersion version of the records.
 * @param doorbellVectors number of doorbell vectors; 0 without a doorbell.
 * @param vgpu name of the vGPU, for people; cut to the field's length.
 * @param geometry places of the region's parts.
 */
public record RegionHeader(long epoch, long descriptionHash, int protocolVersion, int doorbellVectors, String vgpu,
    RegionGeometry geometry) {
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt I32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG_WORD = I64.varHandle();
    private static final VarHandle INT_WORD = I32.varHandle();
    private static final int SLOT_PAGES = 3;

    /**
     * Formats a region: removes the magic, clears slots and heap table, writes the header, and stores the magic with
     * release. The host must not serve the region meanwhile; guests may still read it. A region with the same geometry
     * before keeps its heap table. Processes that lose their sessions by this still hold their pinned memory and the
     * locks of their slots. By these locks guests find memory that can be freed.
     *
     * @param region the whole memory of the region.
     */
    public void format(MemorySegment region) {
        if (epoch == 0 || region.byteSize() != geometry.regionBytes()) {
            throw new IllegalArgumentException("a region must have an epoch and its geometry's length: epoch=" + epoch
                + ", regionBytes=" + region.byteSize() + ", geometryBytes=" + geometry.regionBytes());
        }
        boolean keepsHeap = geometry.equals(geometryOf(region));
        LONG_WORD.setVolatile(region, (long) RegionLayout.HEADER_MAGIC_OFFSET, 0L);
        VarHandle.fullFence();
        region.asSlice(Long.BYTES, geometry.slotsOffset() - Long.BYTES).fill((byte) 0);
        for (int slot = 0; slot < geometry.slotCount(); slot++) {
            region.asSlice(geometry.slot(slot), (long) SLOT_PAGES * RegionLayout.PAGE_BYTES).fill((byte) 0);
        }
        if (!keepsHeap) {
            region.asSlice(geometry.heapTableOffset(), geometry.heapOffset() - geometry.heapTableOffset())
                .fill((byte) 0);
        }
        region.set(I32, RegionLayout.HEADER_REGION_VERSION_OFFSET, RegionLayout.REGION_VERSION);
        region.set(I32, RegionLayout.HEADER_PROTOCOL_VERSION_OFFSET, protocolVersion);
        region.set(I64, RegionLayout.HEADER_REGION_BYTES_OFFSET, geometry.regionBytes());
        region.set(I64, RegionLayout.HEADER_EPOCH_OFFSET, epoch);
        region.set(I64, RegionLayout.HEADER_DESCRIPTION_HASH_OFFSET, descriptionHash);
        region.set(I32, RegionLayout.HEADER_SLOT_COUNT_OFFSET, geometry.slotCount());
        region.set(I32, RegionLayout.HEADER_DOORBELL_VECTORS_OFFSET, doorbellVectors);
        region.set(I64, RegionLayout.HEADER_SLOTS_OFFSET_OFFSET, geometry.slotsOffset());
        region.set(I64, RegionLayout.HEADER_SLOT_STRIDE_OFFSET, geometry.slotStride());
        region.set(I64, RegionLayout.HEADER_COMMAND_OFFSET_OFFSET, geometry.commandOffset());
        region.set(I64, RegionLayout.HEADER_COMMAND_BYTES_OFFSET, geometry.commandBytes());
        region.set(I64, RegionLayout.HEADER_REPLY_OFFSET_OFFSET, geometry.replyOffset());
        region.set(I64, RegionLayout.HEADER_REPLY_BYTES_OFFSET, geometry.replyBytes());
        region.set(I64, RegionLayout.HEADER_BULK_OFFSET_OFFSET, geometry.bulkOffset());
        region.set(I64, RegionLayout.HEADER_CHUNK_COUNT_OFFSET, geometry.chunkCount());
        region.set(I64, RegionLayout.HEADER_CHUNK_BYTES_OFFSET, geometry.chunkBytes());
        region.set(I64, RegionLayout.HEADER_HEAP_TABLE_OFFSET_OFFSET, geometry.heapTableOffset());
        region.set(I64, RegionLayout.HEADER_HEAP_OFFSET_OFFSET, geometry.heapOffset());
        region.set(I64, RegionLayout.HEADER_HEAP_BYTES_OFFSET, geometry.heapBytes());
        text(region, RegionLayout.HEADER_VGPU_OFFSET, RegionLayout.HEADER_VGPU_BYTES, vgpu);
        LONG_WORD.setRelease(region, (long) RegionLayout.HEADER_MAGIC_OFFSET, RegionLayout.REGION_MAGIC);
    }

    /**
     * Frees a slot after the end of its worker: clears the slot's three pages, and stores the host's state last, with
     * release. Later writes of the session's process to the slot belong to no session.
     */
    public static void free(MemorySegment region, RegionGeometry geometry, int slot) {
        region.asSlice(geometry.guestPage(slot), RegionLayout.PAGE_BYTES).fill((byte) 0);
        region.asSlice(geometry.chunkWord(slot, 0), RegionLayout.PAGE_BYTES).fill((byte) 0);
        long host = geometry.hostPage(slot);
        long behindState = RegionLayout.HOST_STATE_OFFSET + Integer.BYTES;
        region.asSlice(host + behindState, RegionLayout.PAGE_BYTES - behindState).fill((byte) 0);
        INT_WORD.setRelease(region, host + RegionLayout.HOST_STATE_OFFSET, RegionLayout.HOST_FREE);
    }

    /**
     * Reads a region's header, as a guest does; does not wait.
     *
     * @return the header, or null without the magic.
     */
    public static RegionHeader read(MemorySegment region) {
        if ((long) LONG_WORD.getAcquire(region, (long) RegionLayout.HEADER_MAGIC_OFFSET)
            != RegionLayout.REGION_MAGIC) {
            return null;
        }
        return new RegionHeader(region.get(I64, RegionLayout.HEADER_EPOCH_OFFSET),
            region.get(I64, RegionLayout.HEADER_DESCRIPTION_HASH_OFFSET),
            region.get(I32, RegionLayout.HEADER_PROTOCOL_VERSION_OFFSET),
            region.get(I32, RegionLayout.HEADER_DOORBELL_VECTORS_OFFSET),
            text(region, RegionLayout.HEADER_VGPU_OFFSET, RegionLayout.HEADER_VGPU_BYTES), geometryOf(region));
    }

    private static RegionGeometry geometryOf(MemorySegment region) {
        return new RegionGeometry(region.get(I64, RegionLayout.HEADER_REGION_BYTES_OFFSET),
            region.get(I32, RegionLayout.HEADER_SLOT_COUNT_OFFSET),
            region.get(I64, RegionLayout.HEADER_SLOTS_OFFSET_OFFSET),
            region.get(I64, RegionLayout.HEADER_SLOT_STRIDE_OFFSET),
            region.get(I64, RegionLayout.HEADER_COMMAND_OFFSET_OFFSET),
            region.get(I64, RegionLayout.HEADER_COMMAND_BYTES_OFFSET),
            region.get(I64, RegionLayout.HEADER_REPLY_OFFSET_OFFSET),
            region.get(I64, RegionLayout.HEADER_REPLY_BYTES_OFFSET),
            region.get(I64, RegionLayout.HEADER_BULK_OFFSET_OFFSET),
            (int) region.get(I64, RegionLayout.HEADER_CHUNK_COUNT_OFFSET),
            region.get(I64, RegionLayout.HEADER_CHUNK_BYTES_OFFSET),
            region.get(I64, RegionLayout.HEADER_HEAP_TABLE_OFFSET_OFFSET),
            region.get(I64, RegionLayout.HEADER_HEAP_OFFSET_OFFSET),
            region.get(I64, RegionLayout.HEADER_HEAP_BYTES_OFFSET));
    }

    /** Stores a text in a region: UTF-8, cut between characters to the field's length, padded with NULs. */
    public static void text(MemorySegment region, long offset, int bytes, String text) {
        byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(utf8.length, bytes - 1);
        while (length < utf8.length && length > 0 && (utf8[length] & 0xc0) == 0x80) {
            length--;
        }
        region.asSlice(offset, bytes).fill((byte) 0);
        MemorySegment.copy(utf8, 0, region, ValueLayout.JAVA_BYTE, offset, length);
    }

    /** Reads a text of a region up to its first NUL. Copies it before the check; replaces invalid UTF-8. */
    public static String text(MemorySegment region, long offset, int bytes) {
        byte[] utf8 = region.asSlice(offset, bytes).toArray(ValueLayout.JAVA_BYTE);
        int length = 0;
        while (length < bytes && utf8[length] != 0) {
            length++;
        }
        return new String(utf8, 0, length, StandardCharsets.UTF_8);
    }
}
