package io.hawser.worker.channel;

import io.hawser.shm.RecordLayout;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Cuts the guest's bytes, as a carrier has brought them into private memory, into records. A header is checked before
 * anything of its payload is looked at. A short record that is whole is served where it lies; others are put together
 * first. Session thread only.
 */
public final class RecordCutter {
    /**
     * Records up to this length cannot be kept; longer ones get memory that a copy can be made from directly. A guest's
     * copies of 16 KiB, the longest that it sends inline over shm, are short.
     */
    public static final int SMALL_RECORD_BYTES = 16 * 1024 + 256;

    private static final long FIRST_SEQUENCE = 3; // HELLO and PROOF were 1 and 2
    private static final int ALIGNMENT_MASK = RecordLayout.ALIGNMENT_BYTES - 1;

    private final RecordHandler handler;
    private final RecordHeader header = new RecordHeader();
    private final MemorySegment headerBytes = Arena.ofAuto().allocate(RecordLayout.HEADER_BYTES,
        RecordLayout.ALIGNMENT_BYTES);

    private int headerCount; // bytes of a header that came in pieces
    private Staging small; // for short records that came in pieces
    private Staging memory; // of the record whose payload is awaited, else null
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
     * Takes bytes. Whole records in them have been served when this returns.
     *
     * @param bytes private memory.
     * @param start offset of the first.
     * @param end offset behind the last.
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

    /** Takes a record whose header is whole; gives where the bytes behind what was taken begin. */
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
     * What the record that has begun still lacks: a carrier can bring so many bytes to {@link #target} itself.
     *
     * @return bytes, 0 between records.
     */
    public int missingBytes() {
        return memory == null || discarding ? 0 : missingBytes;
    }

    /** Where the record's next bytes belong, while {@link #missingBytes} is over 0. */
    public MemorySegment target() {
        return memory.segment();
    }

    /** Offset in {@link #target} at which they belong. */
    public long targetOffset() {
        return receivedBytes;
    }

    /**
     * Notes that bytes are at their place; serves the record when it is whole.
     *
     * @param count how many, at most {@link #missingBytes}.
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

    /** Receives nothing more. */
    public void discard() {
        discarding = true;
    }

    /** Whether what comes is dropped. */
    public boolean isDiscarding() {
        return discarding;
    }

    /** Gives all memory back; nothing is received any more. */
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
