package io.hawser.worker.channel;

import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Cuts the guest's bytes into records, after a carrier has copied them to private memory. A header is checked before
 * any byte of its payload is used. A short and complete record is served in place; other records are assembled first.
 * Session thread only.
 */
public final class RecordCutter {
    /**
     * The handler cannot keep the memory of records up to this length. Longer records get memory that the GPU can copy
     * from directly. A guest's inline copies over shm have at most 16 KiB, so they count as short.
     */
    public static final int SMALL_RECORD_BYTES = 16 * 1024 + 256;

    private static final long FIRST_SEQUENCE = 3; // HELLO and PROOF were 1 and 2
    private static final int ALIGNMENT_MASK = RecordLayout.ALIGNMENT_BYTES - 1;

    private final RecordHandler handler;
    private final RecordHeader header = new RecordHeader();
    private final MemorySegment headerBytes = Arena.ofAuto().allocate(RecordLayout.HEADER_BYTES,
        RecordLayout.ALIGNMENT_BYTES);

    private int headerCount; // bytes of a header that arrived in pieces
    private Staging small; // for short records that arrived in pieces
    private Staging memory; // of the record whose payload is incomplete, else null
    private int receivedBytes;
    private int missingBytes;
    private long expectedSequence = FIRST_SEQUENCE;
    private boolean discarding;

    /**
     * Makes a cutter.
     *
     * @param handler takes the records.
     */
    public RecordCutter(RecordHandler handler) {
        this.handler = handler;
    }

    /**
     * Takes bytes. Serves all complete records before it returns.
     *
     * @param bytes private memory.
     * @param start offset of the first byte.
     * @param end offset after the last byte.
     */
    public void accept(MemorySegment bytes, long start, long end) {
        long at = start;
        while (at < end && !discarding) {
            if (memory != null) {
                int count = (int) Math.min(missingBytes, end - at);
                MemorySegment.copy(bytes, at, memory.segment(), receivedBytes, count);
                at += count;
                received(count);
            } else if (headerCount == 0 && end - at >= RecordLayout.HEADER_BYTES) {
                at = acceptRecord(bytes, at, end);
            } else {
                int count = (int) Math.min(RecordLayout.HEADER_BYTES - headerCount, end - at);
                MemorySegment.copy(bytes, at, headerBytes, headerCount, count);
                headerCount += count;
                at += count;
                if (headerCount == RecordLayout.HEADER_BYTES) {
                    headerCount = 0;
                    acceptRecord(headerBytes, 0, RecordLayout.HEADER_BYTES);
                }
            }
        }
    }

    /** Takes a record whose header is complete; returns the offset of the first byte that was not taken. */
    private long acceptRecord(MemorySegment bytes, long at, long end) {
        header.read(bytes, at);
        String violation = header.violation(expectedSequence);
        if (violation != null) {
            refuse(violation);
            return end;
        }
        expectedSequence++;
        if (!handler.admit(header)) {
            discarding = true;
            return end;
        }
        int lengthBytes = header.lengthBytes();
        if (lengthBytes <= end - at && lengthBytes <= SMALL_RECORD_BYTES
            && (bytes.address() + at & ALIGNMENT_MASK) == 0) {
            handler.record(header, bytes, at, null);
            return at + lengthBytes;
        }
        memory = memoryFor(lengthBytes);
        if (memory == null) {
            refuse("no memory for a record: lengthBytes=" + lengthBytes);
            return end;
        }
        int count = (int) Math.min(lengthBytes, end - at);
        MemorySegment.copy(bytes, at, memory.segment(), 0, count);
        receivedBytes = 0;
        missingBytes = lengthBytes;
        received(count);
        return at + count;
    }

    private Staging memoryFor(int lengthBytes) {
        if (lengthBytes > SMALL_RECORD_BYTES) {
            return handler.memoryFor(lengthBytes);
        }
        if (small == null) {
            small = handler.memoryFor(SMALL_RECORD_BYTES);
        }
        return small;
    }

    /**
     * Bytes that the current record still lacks; a carrier can write that many to {@link #target} itself.
     *
     * @return bytes, 0 between records.
     */
    public int missingBytes() {
        return memory == null || discarding ? 0 : missingBytes;
    }

    /** Destination of the record's next bytes, while {@link #missingBytes} is over 0. */
    public MemorySegment target() {
        return memory.segment();
    }

    /** Offset of these bytes in {@link #target}. */
    public long targetOffset() {
        return receivedBytes;
    }

    /**
     * Counts bytes that the carrier has written to {@link #target}; serves the record when it is complete.
     *
     * @param count number of bytes, at most {@link #missingBytes}.
     */
    public void received(int count) {
        receivedBytes += count;
        missingBytes -= count;
        if (missingBytes > 0) {
            return;
        }
        Staging whole = memory;
        memory = null;
        if (whole == small) {
            handler.record(header, whole.segment(), 0, null);
        } else if (!handler.record(header, whole.segment(), 0, whole)) {
            handler.giveBack(whole);
        }
    }

    private void refuse(String reason) {
        discarding = true;
        handler.refuse(reason);
    }

    /** Where this cutter stands, for a link over a socket. */
    public LinkPosition position() {
        return position(0, 0, 0);
    }

    /** Where this cutter stands, with the positions of a link's rings. */
    public LinkPosition position(long commandPosition, long replyPosition, long replyHead) {
        boolean isBegun = memory != null;
        MemorySegment taken = isBegun ? memory.segment().asSlice(0, receivedBytes)
            : headerBytes.asSlice(0, headerCount);
        return new LinkPosition(isBegun ? expectedSequence - 1 : expectedSequence,
            MemorySegment.ofArray(taken.toArray(ValueLayout.JAVA_BYTE)),
            isBegun && header.isCredited() ? header.lengthBytes() : 0, commandPosition, replyPosition, replyHead);
    }

    /** Goes on where the cutter of another worker has stopped. Call it before the first byte. */
    public void resume(LinkPosition from) {
        expectedSequence = from.sequence();
        accept(from.partial(), 0, from.partial().byteSize());
    }

    /** Drops all further input. */
    public void discard() {
        discarding = true;
    }

    /** Whether input is dropped. */
    public boolean isDiscarding() {
        return discarding;
    }

    /** Gives all memory back, and drops all further input. */
    public void dropPartial() {
        discarding = true;
        if (memory != null && memory != small) {
            handler.giveBack(memory);
        }
        if (small != null) {
            handler.giveBack(small);
        }
        memory = null;
        small = null;
    }
}
