package io.hawser.shm.wire;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Reads one record from private memory, never from memory that the sender can still write. One thread at a time.
 *
 * <p>Bad bytes do not throw. The first bad byte sets a sticky flag; every later read gives 0, and {@link #end} returns
 * false, so that a decoder needs one check, at its end. Offsets count from the start of the payload.
 *
 * <p>A decoder calls {@link #begin} with the size of its fixed part. It reads fields at their offsets and buffers in
 * declared order. Then it calls {@link #end}, which requires the record to have exactly the length of its fields.
 */
public final class RecordReader {
    private static final ValueLayout.OfShort I16 = little(ValueLayout.JAVA_SHORT_UNALIGNED);
    private static final ValueLayout.OfInt I32 = little(ValueLayout.JAVA_INT_UNALIGNED);
    private static final ValueLayout.OfLong I64 = little(ValueLayout.JAVA_LONG_UNALIGNED);

    private MemorySegment memory = MemorySegment.NULL;
    private long payload;
    private long payloadBytes;
    private long cursor;
    private boolean malformed;
    private String reason = "";

    /**
     * Begins to read a record.
     *
     * @param segment private memory that holds the record.
     * @param offset offset of its header in bytes.
     * @param lengthBytes number of bytes available; the header must state the same length.
     * @return this.
     */
    public RecordReader wrap(MemorySegment segment, long offset, long lengthBytes) {
        if (offset < 0 || lengthBytes < RecordLayout.HEADER_BYTES || lengthBytes > segment.byteSize() - offset) {
            throw new IndexOutOfBoundsException("a record must lie inside its segment: offset=" + offset
                + ", lengthBytes=" + lengthBytes + ", segmentBytes=" + segment.byteSize());
        }
        memory = segment;
        payload = offset + RecordLayout.HEADER_BYTES;
        payloadBytes = lengthBytes - RecordLayout.HEADER_BYTES;
        cursor = 0;
        malformed = false;
        reason = "";
        int stated = header(RecordLayout.LENGTH_OFFSET);
        if (stated != lengthBytes || lengthBytes % RecordLayout.ALIGNMENT_BYTES != 0
            || lengthBytes > RecordLayout.MAX_RECORD_BYTES) {
            malformed("length: stated=" + stated + ", received=" + lengthBytes);
        }
        return this;
    }

    /** Opcode; bit 31 is set in a reply. */
    public int opcode() {
        return header(RecordLayout.OPCODE_OFFSET);
    }

    /** Sequence number of a request; in a reply, that of its request. */
    public long sequence() {
        return memory.get(I64, payload - RecordLayout.HEADER_BYTES + RecordLayout.SEQUENCE_OFFSET);
    }

    /** Guest thread number, from 1; 0 for no thread. */
    public int thread() {
        return header(RecordLayout.THREAD_OFFSET);
    }

    /** Id of the calling thread's current context; 0 for none. */
    public int context() {
        return header(RecordLayout.CONTEXT_OFFSET);
    }

    /** Flags of a request, status of a reply. */
    public int flags() {
        return header(RecordLayout.FLAGS_OFFSET);
    }

    /** Bytes after the header. */
    public long payloadBytes() {
        return payloadBytes;
    }

    /**
     * Sets the size of the fixed part; buffers follow it. A shorter record is malformed.
     *
     * @param fixedBytes size in bytes, a multiple of 8.
     */
    public void begin(long fixedBytes) {
        if (fixedBytes > payloadBytes) {
            malformed("payload is shorter than its fixed part: payloadBytes=" + payloadBytes + ", fixedBytes="
                + fixedBytes);
        }
        cursor = fixedBytes;
    }

    /** Signed byte at a payload offset; 0 when malformed. */
    public byte i8(long offset) {
        return inside(offset, 1) ? memory.get(ValueLayout.JAVA_BYTE, payload + offset) : 0;
    }

    /** Unsigned byte at a payload offset; 0 when malformed. */
    public int u8(long offset) {
        return i8(offset) & 0xFF;
    }

    /** Signed 16-bit number at a payload offset; 0 when malformed. */
    public short i16(long offset) {
        return inside(offset, 2) ? memory.get(I16, payload + offset) : 0;
    }

    /** Unsigned 16-bit number at a payload offset; 0 when malformed. */
    public int u16(long offset) {
        return i16(offset) & 0xFFFF;
    }

    /** 32-bit number at a payload offset; 0 when malformed. */
    public int i32(long offset) {
        return inside(offset, 4) ? memory.get(I32, payload + offset) : 0;
    }

    /** Unsigned 32-bit number at a payload offset; 0 when malformed. */
    public long u32(long offset) {
        return i32(offset) & 0xFFFFFFFFL;
    }

    /** 64-bit number at a payload offset; 0 when malformed. */
    public long i64(long offset) {
        return inside(offset, 8) ? memory.get(I64, payload + offset) : 0;
    }

    /** 32-bit floating-point number at a payload offset; 0 when malformed. */
    public float f32(long offset) {
        return Float.intBitsToFloat(i32(offset));
    }

    /** 64-bit floating-point number at a payload offset; 0 when malformed. */
    public double f64(long offset) {
        return Double.longBitsToDouble(i64(offset));
    }

    /**
     * A part of the payload, not copied; empty when malformed. It is valid as long as the record's memory.
     *
     * @param offset payload offset in bytes.
     * @param lengthBytes its length in bytes.
     */
    public MemorySegment slice(long offset, long lengthBytes) {
        return inside(offset, lengthBytes) ? memory.asSlice(payload + offset, lengthBytes)
            : MemorySegment.NULL.asSlice(0, 0);
    }

    /**
     * Reads the next buffer. Buffers follow the fixed part in declared order, each padded to 8.
     *
     * @param lengthOffset payload offset of its u32 length.
     * @param maxBytes maximum length; the description names the abuse that it stops.
     * @return its bytes, not copied; empty when malformed.
     */
    public MemorySegment buffer(long lengthOffset, long maxBytes) {
        return take(u32(lengthOffset), maxBytes);
    }

    /** As {@link #buffer}, but a NULL is legal and gives Java's null. */
    public MemorySegment bufferOrNull(long lengthOffset, long maxBytes) {
        long lengthBytes = u32(lengthOffset);
        return lengthBytes == (RecordLayout.NULL_LENGTH & 0xFFFFFFFFL) && !malformed ? null
            : take(lengthBytes, maxBytes);
    }

    /** Reads the next buffer as text: UTF-8 without a NUL; "" when malformed. */
    public String string(long lengthOffset, long maxBytes) {
        byte[] bytes = buffer(lengthOffset, maxBytes).toArray(ValueLayout.JAVA_BYTE);
        for (byte b : bytes) {
            if (b == 0) {
                malformed("a text must not hold a NUL: lengthOffset=" + lengthOffset);
                return "";
            }
        }
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** As {@link #string}, but a NULL is legal and gives Java's null. */
    public String stringOrNull(long lengthOffset, long maxBytes) {
        boolean isNull = u32(lengthOffset) == (RecordLayout.NULL_LENGTH & 0xFFFFFFFFL);
        return isNull && !malformed ? null : string(lengthOffset, maxBytes);
    }

    /**
     * Ends the decoding: the payload must have exactly the length of the fields read.
     *
     * @return whether the record is well-formed.
     */
    public boolean end() {
        if (!malformed && cursor != payloadBytes) {
            malformed("payload is longer than its fields: payloadBytes=" + payloadBytes + ", fieldsBytes=" + cursor);
        }
        return !malformed;
    }

    /** Whether the reader found a bad byte. */
    public boolean isMalformed() {
        return malformed;
    }

    /** The first defect, for the log; "" if there is none. */
    public String reason() {
        return reason;
    }

    /** Marks the record as malformed, for a rule of its decoder; an earlier reason stays. */
    public void malformed(String why) {
        if (!malformed) {
            malformed = true;
            reason = why;
        }
    }

    private MemorySegment take(long lengthBytes, long maxBytes) {
        if (!malformed && lengthBytes > maxBytes) {
            malformed("a buffer must not exceed its limit: lengthBytes=" + lengthBytes + ", maxBytes=" + maxBytes);
        }
        long start = cursor;
        // No overflow: both values are below 2^33.
        long next = start + (lengthBytes + 7 & ~7L);
        if (!malformed && next > payloadBytes) {
            malformed("a buffer must lie inside the record: offset=" + start + ", lengthBytes=" + lengthBytes
                + ", payloadBytes=" + payloadBytes);
        }
        if (malformed) {
            return MemorySegment.NULL.asSlice(0, 0);
        }
        cursor = next;
        return memory.asSlice(payload + start, lengthBytes);
    }

    private boolean inside(long offset, long lengthBytes) {
        if (malformed) {
            return false;
        }
        if (offset < 0 || lengthBytes < 0 || offset > payloadBytes - lengthBytes) {
            malformed("a field must lie inside the payload: offset=" + offset + ", lengthBytes=" + lengthBytes
                + ", payloadBytes=" + payloadBytes);
            return false;
        }
        return true;
    }

    private int header(int offset) {
        return memory.get(I32, payload - RecordLayout.HEADER_BYTES + offset);
    }

    private static ValueLayout.OfShort little(ValueLayout.OfShort layout) {
        return layout.withOrder(ByteOrder.LITTLE_ENDIAN);
    }

    private static ValueLayout.OfInt little(ValueLayout.OfInt layout) {
        return layout.withOrder(ByteOrder.LITTLE_ENDIAN);
    }

    private static ValueLayout.OfLong little(ValueLayout.OfLong layout) {
        return layout.withOrder(ByteOrder.LITTLE_ENDIAN);
    }
}
