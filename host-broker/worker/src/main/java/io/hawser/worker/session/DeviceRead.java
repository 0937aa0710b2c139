package io.hawser.worker.session;

import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.session.DataBuffers.Buffer;
import java.lang.foreign.MemorySegment;

/**
 * One copy from the device to the guest, in DATA records or straight to the guest's memory. It ends with the reply to
 * its call. Session thread.
 *
 * <p>A copy with enough free buffers is issued to its stream at once. For a longer copy, the stream waits for a word
 * ({@link WaitWords}) while the copy goes through the context's stream for reads ({@link StreamWork#prepareReads}), a
 * few pieces at a time. The work issued to a stream at once must stay bounded. Otherwise the driver blocks the issuing
 * thread when a stream's queue is full, and only that thread can let the stream proceed. While a stream waits, every
 * copy takes this way ({@link StreamWork#isReading}).
 */
final class DeviceRead {
    private final StreamWork work;
    private final Call call;
    private final StreamState stream;
    private final long bytes;
    private final long pieceBytes;
    private final PieceReader reader;
    private final GuestPlace place; // null: the bytes travel in DATA
    private WaitWords.Word gate; // null while the stream does not wait
    private long issued;
    private long missingPieces;
    private long sent; // bytes of a long copy
    private boolean usesLanes; // and its data has not been announced
    private int result;
    private boolean finished; // may be set before its pieces have ended: a failed context reports at once

    DeviceRead(StreamWork work, Call call, StreamState stream, long bytes, long pieceBytes,
        PieceReader reader, GuestPlace place) {
        this.work = work;
        this.call = call;
        this.stream = stream;
        this.bytes = bytes;
        this.pieceBytes = pieceBytes;
        this.reader = reader;
        this.place = place;
    }

    /** Issues the copy, directly or by a detour. */
    void begin() {
        int first = padded(Math.min(pieceBytes, bytes));
        if (bytes > 0 && work.isReading()) {
            detour();
            return;
        }
        if (bytes > 0 && bytes <= pieceBytes && work.buffers().hasRoomFor(1, first)) {
            beginOnePiece(first);
            return;
        }
        if (!work.buffers().hasRoomFor((bytes + pieceBytes - 1) / pieceBytes, first)) {
            detour();
            return;
        }
        while (issued < bytes && result == 0) {
            Buffer buffer = work.buffers().take(padded(nextBytes()));
            if (buffer == null) {
                result = CudaResult.OUT_OF_MEMORY;
            } else {
                issue(buffer, stream);
            }
        }
        // Behind all pieces: their data has been appended before this runs.
        work.whenReached(stream, this::finish);
    }

    /** Issues a copy of one piece, which needs only one marker. */
    private void beginOnePiece(int padded) {
        Buffer buffer = work.buffers().take(padded);
        int refused = buffer == null ? CudaResult.OUT_OF_MEMORY
            : reader.read(buffer.staging().segment().asSlice(0, bytes), 0, stream.stream());
        work.whenReached(stream, status -> {
            int ended = refused != 0 ? refused : status;
            if (ended == 0) {
                ended = deliver(0, buffer, (int) bytes);
            } else if (buffer != null) {
                work.buffers().give(buffer);
            }
            work.ended(call, ended);
        });
    }

    private void detour() {
        WaitWords.Word word = work.waitWords().take();
        result = word == null ? CudaResult.OUT_OF_MEMORY : work.prepareReads(stream.context());
        if (result == 0) {
            work.whenReached(stream, this::start);
            work.seal();
            result = word.await(stream.stream());
        }
        if (result == 0) {
            gate = word;
            work.opened(this, stream);
        } else if (word != null) {
            word.give();
        }
        work.whenReached(stream, this::finish);
    }

    /** Runs when the stream has reached this copy. */
    private void start(int reached) {
        if (gate == null) {
            return; // the stream does not wait, and finish reports why
        }
        if (reached != 0) {
            fail(reached);
        } else {
            issueMore();
        }
    }

    private void issueMore() {
        while (issued < bytes && result == 0 && !finished) {
            Buffer buffer = work.buffers().take(padded(nextBytes()));
            if (buffer == null && work.buffers().isInUse()) {
                work.buffers().whenFree(this::issueMore);
                return;
            }
            int entered = buffer == null ? CudaResult.OUT_OF_MEMORY : work.enter(stream.context());
            if (entered != 0) {
                if (buffer != null) {
                    work.buffers().give(buffer);
                }
                fail(entered);
                return;
            }
            issue(buffer, work.readStream(stream.context()));
        }
        openIfDone();
    }

    private int nextBytes() {
        return (int) Math.min(pieceBytes, bytes - issued);
    }

    /** Length on the wire: a multiple of 8. */
    private static int padded(long length) {
        return (int) (length + RecordLayout.ALIGNMENT_BYTES - 1 & -RecordLayout.ALIGNMENT_BYTES);
    }

    private void issue(Buffer buffer, StreamState through) {
        int length = nextBytes();
        long offset = issued;
        MemorySegment target = buffer.staging().segment().asSlice(0, length);
        work.seal();
        int refused = reader.read(target, offset, through.stream());
        if (refused != 0) {
            work.buffers().give(buffer);
            fail(refused);
            return;
        }
        issued += length;
        missingPieces++;
        work.whenReached(through, status -> {
            missingPieces--;
            if (status == 0 && result == 0 && !finished) {
                send(offset, buffer, length);
            } else {
                work.buffers().give(buffer);
                result = result == 0 ? status : result;
            }
            openIfDone();
        });
    }

    /**
     * Sends a piece, without lanes.
     *
     * @return CUresult; on an error the buffer has been given back.
     */
    private int deliver(long offset, Buffer buffer, int length) {
        if (place != null) {
            return work.write(place, offset, buffer, length);
        }
        work.send(call, offset, buffer, length);
        return 0;
    }

    /** Sends a piece. Behind the last one, all later records wait for those of a long copy. */
    private void send(long offset, Buffer buffer, int length) {
        if (place != null || bytes < RecordLayout.LONG_COPY_BYTES) {
            int refused = deliver(offset, buffer, length);
            result = result == 0 ? refused : result;
            return;
        }
        usesLanes |= work.sendByLanes(call, offset, buffer, length);
        sent += length;
        if (sent == bytes) {
            awaitData();
        }
    }

    /** Called when no piece follows. */
    private void awaitData() {
        if (usesLanes) {
            usesLanes = false;
            work.awaitData(call, sent);
        }
    }

    private void fail(int status) {
        result = result == 0 ? status : result;
        openIfDone();
    }

    /** Releases the stream when no part of the copy is left. */
    private void openIfDone() {
        if (missingPieces == 0 && (issued == bytes || result != 0)) {
            open();
        }
    }

    /** Releases the stream. */
    void open() {
        finished |= missingPieces > 0 || issued < bytes; // the session is over, or the context has failed
        if (gate != null) {
            gate.open();
            work.closed(this);
        }
    }

    private void finish(int status) {
        finished = true;
        open();
        if (gate != null && status == 0) { // a failed context may leave its streams waiting
            gate.give();
            gate = null;
        }
        awaitData(); // of a copy that has failed half way
        work.ended(call, result != 0 ? result : status);
    }
}
