package io.hawser.worker.channel.ring;

import io.hawser.shm.ring.RingCorruptException;
import io.hawser.shm.ring.RingWriter;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;

/**
 * Puts records into the reply ring. While the ring is full, they wait here in order until the guest has made room. No
 * method blocks. Session thread only.
 */
final class ReplyQueue {
    private static final int CHUNK_BYTES = 16 * 1024;

    private final GuestRings rings;
    private final RingWriter ring;
    private final ArrayDeque<Piece> waiting = new ArrayDeque<>();
    private long waitingBytes; // without pieces of copies
    private boolean isUncommitted;
    private boolean closed;
    private String failure;

    /** Bytes that wait for room: consecutive records, or a piece of a copy in its own memory. */
    private static final class Piece {
        final MemorySegment bytes;
        final Runnable sent; // null for records
        long start;
        long end;

        Piece(MemorySegment bytes, long end, Runnable sent) {
            this.bytes = bytes;
            this.end = end;
            this.sent = sent;
        }
    }

    ReplyQueue(GuestRings rings) {
        this.rings = rings;
        this.ring = rings.replies();
    }

    /** The ring, for its positions. */
    RingWriter ring() {
        return ring;
    }

    /** Appends a record. */
    void append(RecordWriter record, int lengthBytes) {
        if (closed) {
            return;
        }
        if (waiting.isEmpty() && hasRoom(lengthBytes)) {
            ring.put(record.memory(), 0, lengthBytes);
            isUncommitted = true;
        } else {
            enqueue(record, lengthBytes);
        }
    }

    /** Appends a record that ends with a piece of a copy; see {@code Link.appendData}. */
    void appendData(RecordWriter prefix, int prefixBytes, Staging piece, int bytes, Runnable sent) {
        int padded = bytes + RecordLayout.ALIGNMENT_BYTES - 1 & -RecordLayout.ALIGNMENT_BYTES;
        if (closed) {
            sent.run();
            return;
        }
        MemorySegment data = piece.segment();
        // The bytes there belong to this session, so no secret leaks, but the wire format demands zeros.
        data.asSlice(bytes, padded - bytes).fill((byte) 0);
        if (waiting.isEmpty() && hasRoom(prefixBytes + padded)) {
            ring.put(prefix.memory(), 0, prefixBytes);
            ring.put(data, 0, padded);
            isUncommitted = true;
            sent.run();
            return;
        }
        enqueue(prefix, prefixBytes);
        waiting.add(new Piece(data, padded, sent));
    }

    private void enqueue(RecordWriter record, int lengthBytes) {
        if (closed) {
            return; // hasRoom() found the guest's ring position corrupt and closed the queue
        }
        Piece last = waiting.peekLast();
        if (last == null || last.sent != null || last.bytes.byteSize() - last.end < lengthBytes) {
            last = new Piece(MemorySegment.ofArray(new byte[Math.max(CHUNK_BYTES, lengthBytes)]), 0, null);
            waiting.add(last);
        }
        MemorySegment.copy(record.memory(), 0, last.bytes, last.end, lengthBytes);
        last.end += lengthBytes;
        waitingBytes += lengthBytes;
    }

    private boolean hasRoom(long bytes) {
        return ring.hasRoom(bytes) || room() >= bytes;
    }

    private long room() {
        try {
            return ring.room();
        } catch (RingCorruptException e) {
            failure = e.getMessage();
            close();
            return 0;
        }
    }

    /** Commits the records in the ring, so that the guest can read them. */
    void flush() {
        if (isUncommitted) {
            isUncommitted = false;
            ring.commit();
            rings.committed();
        }
    }

    /** Moves waiting bytes into the ring and commits them; returns whether any byte moved. */
    boolean pump() {
        if (rings.owesReplies()) {
            rings.committed();
        }
        if (waiting.isEmpty()) {
            return false;
        }
        long room = room() & -RecordLayout.ALIGNMENT_BYTES;
        boolean moved = room > 0;
        while (room > 0 && !waiting.isEmpty()) {
            Piece first = waiting.peek();
            long bytes = Math.min(room, first.end - first.start);
            ring.put(first.bytes, first.start, bytes);
            isUncommitted = true;
            first.start += bytes;
            room -= bytes;
            if (first.sent == null) {
                waitingBytes -= bytes;
            }
            if (first.start == first.end) {
                waiting.remove();
                if (first.sent != null) {
                    first.sent.run();
                }
            }
        }
        flush();
        return moved;
    }

    /** Whether bytes wait for room, or until the guest can see them. */
    boolean isWaiting() {
        return !waiting.isEmpty() || rings.owesReplies();
    }

    /** Whether {@link #pump} would move bytes, or would discover that the ring is corrupt. */
    boolean canPump() {
        return !waiting.isEmpty() && (room() > 0 || closed);
    }

    /** Bytes of records that wait for room, without pieces of copies. */
    long waitingBytes() {
        return waitingBytes;
    }

    /** The rule that the guest has broken, returned once; null for none. */
    String takeFailure() {
        String broken = failure;
        failure = null;
        return broken;
    }

    /** Drops waiting and later records. */
    void close() {
        closed = true;
        waitingBytes = 0;
        for (Piece piece = waiting.poll(); piece != null; piece = waiting.poll()) {
            if (piece.sent != null) {
                piece.sent.run();
            }
        }
    }
}
