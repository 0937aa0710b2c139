package io.hawser.worker.channel;

import io.hawser.shm.wire.RecordLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** The header of the current record, with the checks that need no session. */
public final class RecordHeader {
    /** A guest numbers its threads consecutively, so no correct guest reaches a larger number. */
    public static final int MAX_THREAD = 1 << 20;

    private static final ValueLayout.OfInt I32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private int lengthBytes;
    private int opcode;
    private long sequence;
    private int thread;
    private int context;
    private int flags;
    private int reserved;

    /**
     * Reads the fields from private memory.
     *
     * @param memory holds the header.
     * @param offset the header's offset.
     */
    public void read(MemorySegment memory, long offset) {
        lengthBytes = memory.get(I32, offset + RecordLayout.LENGTH_OFFSET);
        opcode = memory.get(I32, offset + RecordLayout.OPCODE_OFFSET);
        sequence = memory.get(I64, offset + RecordLayout.SEQUENCE_OFFSET);
        thread = memory.get(I32, offset + RecordLayout.THREAD_OFFSET);
        context = memory.get(I32, offset + RecordLayout.CONTEXT_OFFSET);
        flags = memory.get(I32, offset + RecordLayout.FLAGS_OFFSET);
        reserved = memory.get(I32, offset + RecordLayout.RESERVED_OFFSET);
    }

    /**
     * Checks the rules for every request.
     *
     * @param expectedSequence the sequence number that must come next.
     * @return null, or the broken rule and the values.
     */
    String violation(long expectedSequence) {
        if (lengthBytes < RecordLayout.HEADER_BYTES || lengthBytes > RecordLayout.MAX_RECORD_BYTES
            || lengthBytes % RecordLayout.ALIGNMENT_BYTES != 0) {
            return "a record's length must be a multiple of 8 within 32.." + RecordLayout.MAX_RECORD_BYTES
                + ": lengthBytes=" + lengthBytes + describe();
        }
        if (sequence != expectedSequence) {
            return "a record's sequence must be the next: expected=" + expectedSequence + describe();
        }
        if ((flags & ~(RecordLayout.FLAG_REPLY | RecordLayout.FLAG_CREDITED)) != 0 || reserved != 0) {
            return "a request's unknown flags and reserved field must be 0: flags=" + Integer.toHexString(flags)
                + " reserved=" + reserved + describe();
        }
        if (thread < 0 || thread > MAX_THREAD) {
            return "a guest thread's number must be within 0.." + MAX_THREAD + ": thread="
                + Integer.toUnsignedString(thread) + describe();
        }
        return null;
    }

    private String describe() {
        return " opcode=0x" + Integer.toHexString(opcode) + " sequence=" + Long.toUnsignedString(sequence);
    }

    /**
     * Length of the whole record.
     *
     * @return bytes, including the header.
     */
    public int lengthBytes() {
        return lengthBytes;
    }

    /**
     * The function that the guest calls.
     *
     * @return library in the upper half, number in the lower.
     */
    public int opcode() {
        return opcode;
    }

    /**
     * The record's sequence number.
     *
     * @return from 1.
     */
    public long sequence() {
        return sequence;
    }

    /**
     * The calling guest thread.
     *
     * @return its number; 0 when the record belongs to no thread.
     */
    public int thread() {
        return thread;
    }

    /**
     * The calling thread's current context.
     *
     * @return its id, 0 for none.
     */
    public int context() {
        return context;
    }

    /**
     * Whether the guest waits for a reply.
     *
     * @return flag REPLY.
     */
    public boolean wantsReply() {
        return (flags & RecordLayout.FLAG_REPLY) != 0;
    }

    /**
     * Whether the record costs credit.
     *
     * @return flag CREDITED.
     */
    public boolean isCredited() {
        return (flags & RecordLayout.FLAG_CREDITED) != 0;
    }
}
