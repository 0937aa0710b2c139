package io.hawser.shm.wire;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Writes records into its own memory, which it reuses for the next record. One thread at a time.
 *
 * <p>{@link #begin} writes the header, and {@link #fixed} makes room for the fixed part. Fields are stored at their
 * payload offsets; buffers follow in declared order. {@link #end} stores the length.
 */
public final class RecordWriter {
    private static final ValueLayout.OfShort I16 =
        ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt I32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private byte[] bytes;
    private MemorySegment memory;
    private int length;

    /**
     * Creates a writer.
     *
     * @param capacityBytes initial capacity, at least a header; the memory grows when needed.
     */
    public RecordWriter(int capacityBytes) {
        bytes = new byte[Math.max(capacityBytes, RecordLayout.HEADER_BYTES)];
        memory = MemorySegment.ofArray(bytes);
    }

    /**
     * Begins a record; the previous record is lost.
     *
     * @param opcode opcode, with bit 31 in a reply.
     * @param sequence sequence number.
     * @param thread guest thread number or 0.
     * @param context context id or 0.
     * @param flags flags of a request, status of a reply.
     * @return this.
     */
    public RecordWriter begin(int opcode, long sequence, int thread, int context, int flags) {
        length = RecordLayout.HEADER_BYTES;
        memory.set(I32, RecordLayout.LENGTH_OFFSET, 0);
        memory.set(I32, RecordLayout.OPCODE_OFFSET, opcode);
        memory.set(I64, RecordLayout.SEQUENCE_OFFSET, sequence);
        memory.set(I32, RecordLayout.THREAD_OFFSET, thread);
        memory.set(I32, RecordLayout.CONTEXT_OFFSET, context);
        memory.set(I32, RecordLayout.FLAGS_OFFSET, flags);
        memory.set(I32, RecordLayout.RESERVED_OFFSET, 0);
        return this;
    }

    /** Reserves a fixed part of {@code fixedBytes} (a multiple of 8), all zero; call before storing any field. */
    public void fixed(int fixedBytes) {
        extend(fixedBytes);
    }

    /** Stores a byte at a payload offset. */
    public void i8(long offset, int value) {
        memory.set(ValueLayout.JAVA_BYTE, RecordLayout.HEADER_BYTES + offset, (byte) value);
    }

    /** Stores a 16-bit number at a payload offset. */
    public void i16(long offset, int value) {
        memory.set(I16, RecordLayout.HEADER_BYTES + offset, (short) value);
    }

    /** Stores a 32-bit number at a payload offset. */
    public void i32(long offset, int value) {
        memory.set(I32, RecordLayout.HEADER_BYTES + offset, value);
    }

    /** Stores a 64-bit number at a payload offset. */
    public void i64(long offset, long value) {
        memory.set(I64, RecordLayout.HEADER_BYTES + offset, value);
    }

    /** Stores a 32-bit floating-point number at a payload offset. */
    public void f32(long offset, float value) {
        i32(offset, Float.floatToRawIntBits(value));
    }

    /** Stores a 64-bit floating-point number at a payload offset. */
    public void f64(long offset, double value) {
        i64(offset, Double.doubleToRawLongBits(value));
    }

    /** Copies a struct of {@code lengthBytes} from {@code source} to a payload offset in the fixed part. */
    public void struct(long offset, MemorySegment source, long sourceOffset, long lengthBytes) {
        MemorySegment.copy(source, sourceOffset, memory, RecordLayout.HEADER_BYTES + offset, lengthBytes);
    }

    /** Appends a buffer and stores its length at {@code lengthOffset}. */
    public void buffer(long lengthOffset, MemorySegment source, long sourceOffset, long lengthBytes) {
        int at = extend(Math.toIntExact(lengthBytes + 7 & ~7L));
        MemorySegment.copy(source, sourceOffset, memory, at, lengthBytes);
        i32(lengthOffset, (int) lengthBytes);
    }

    /** As {@link #buffer(long, MemorySegment, long, long)} for a whole segment; null is written as a NULL. */
    public void buffer(long lengthOffset, MemorySegment source) {
        if (source == null) {
            i32(lengthOffset, RecordLayout.NULL_LENGTH);
        } else {
            buffer(lengthOffset, source, 0, source.byteSize());
        }
    }

    /** Appends a text as UTF-8, without a NUL; null is written as a NULL. */
    public void string(long lengthOffset, String text) {
        buffer(lengthOffset, text == null ? null : MemorySegment.ofArray(text.getBytes(StandardCharsets.UTF_8)));
    }

    /**
     * Ends the record.
     *
     * @return its length in bytes, a multiple of 8.
     */
    public int end() {
        memory.set(I32, RecordLayout.LENGTH_OFFSET, length);
        return length;
    }

    /** The memory that holds the record, from 0 to the length from {@link #end}; growth replaces the array. */
    public byte[] array() {
        return bytes;
    }

    /** As {@link #array}, as a segment. */
    public MemorySegment memory() {
        return memory;
    }

    private int extend(int addedBytes) {
        int at = length;
        int wanted = Math.addExact(at, addedBytes);
        if (wanted > RecordLayout.MAX_RECORD_BYTES) {
            throw new IllegalArgumentException("a record must not exceed MAX_RECORD_BYTES: lengthBytes=" + wanted
                + ", maxBytes=" + RecordLayout.MAX_RECORD_BYTES);
        }
        if (wanted > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(wanted, Math.min(2 * bytes.length, RecordLayout.MAX_RECORD_BYTES)));
            memory = MemorySegment.ofArray(bytes);
        }
        Arrays.fill(bytes, at, wanted, (byte) 0);
        length = wanted;
        return at;
    }
}
