package io.hawser.worker.session;

import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordReader;
import io.hawser.worker.channel.RecordHeader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;

/** Serves the control records that a guest may send to a worker: images and acknowledgements. Session thread only. */
final class ControlRecords {
    private ControlRecords() {}

    /** Whether an opcode is a control record's. */
    static boolean isRequest(int opcode) {
        return opcode == RecordLayout.CONTROL_STAGE || opcode == RecordLayout.CONTROL_STAGE_DATA
            || opcode == RecordLayout.CONTROL_CALLBACK_DONE || opcode == RecordLayout.CONTROL_FOLLOWS
            || opcode == RecordLayout.CONTROL_LEFT;
    }

    /** Whether a record must be served at once, because a stream waits for it. */
    static boolean endsHostFunction(int opcode) {
        return opcode == RecordLayout.CONTROL_CALLBACK_DONE;
    }

    /** Serves a control record. */
    static void serve(Session session, Call call, RecordHeader header) {
        switch (header.opcode()) {
            case RecordLayout.CONTROL_STAGE -> stage(session, call);
            case RecordLayout.CONTROL_STAGE_DATA -> stageData(session, call);
            case RecordLayout.CONTROL_CALLBACK_DONE -> callbackDone(session, call);
            case RecordLayout.CONTROL_FOLLOWS -> follows(session, call);
            case RecordLayout.CONTROL_LEFT -> left(session, call);
            default -> throw new IllegalArgumentException("not a control record: opcode=" + header.opcode());
        }
    }

    private static void stage(Session session, Call call) {
        RecordReader in = call.in();
        in.begin(RecordLayout.STAGE_FIXED_BYTES);
        long blobId = in.i64(RecordLayout.STAGE_BLOB_ID_OFFSET);
        long totalBytes = in.i64(RecordLayout.STAGE_TOTAL_BYTES_OFFSET);
        byte[] sha256 = in.slice(RecordLayout.STAGE_SHA256_OFFSET, RecordLayout.DIGEST_BYTES)
            .toArray(ValueLayout.JAVA_BYTE);
        if (!isWhole(call)) {
            return;
        }
        BlobStore.Outcome outcome = session.objects().blobs().stage(blobId, totalBytes, sha256);
        if (outcome == BlobStore.Outcome.MALFORMED) {
            call.fatal("STAGE must name a new blob with its true length: blobId=" + blobId + " totalBytes="
                + totalBytes);
            return;
        }
        if (outcome == BlobStore.Outcome.FULL) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        BlobStore blobs = session.objects().blobs();
        String content = HexFormat.of().formatHex(sha256);
        if (outcome == BlobStore.Outcome.OK && session.images().has(content)) {
            call.deferWithoutRecord();
            session.images().fetch(content, blobs.beginFetch(blobId), isThere -> {
                blobs.endFetch(blobId, isThere);
                answerStage(call, isThere);
            });
            return;
        }
        answerStage(call, outcome == BlobStore.Outcome.KNOWN);
    }

    private static void answerStage(Call call, boolean known) {
        call.reply().fixed(RecordLayout.ALIGNMENT_BYTES);
        call.reply().i32(0, known ? 1 : 0);
        call.finish(CudaResult.SUCCESS);
    }

    private static void stageData(Session session, Call call) {
        RecordReader in = call.in();
        in.begin(RecordLayout.STAGE_DATA_FIXED_BYTES);
        long blobId = in.i64(RecordLayout.STAGE_DATA_BLOB_ID_OFFSET);
        long offsetBytes = in.i64(RecordLayout.STAGE_DATA_OFFSET_BYTES_OFFSET);
        MemorySegment piece = in.buffer(RecordLayout.STAGE_DATA_BYTES_OFFSET, RecordLayout.MAX_BULK_BYTES);
        if (!isWhole(call)) {
            return;
        }
        if (session.objects().blobs().append(blobId, offsetBytes, piece) == BlobStore.Outcome.MALFORMED) {
            call.fatal("STAGE_DATA must continue a blob and end in its digest: blobId=" + blobId + " offsetBytes="
                + offsetBytes + " bytes=" + piece.byteSize());
            return;
        }
        call.finish(CudaResult.SUCCESS);
    }

    private static void callbackDone(Session session, Call call) {
        call.in().begin(RecordLayout.CALLBACK_DONE_FIXED_BYTES);
        long callbackId = call.in().i64(RecordLayout.CALLBACK_DONE_CALLBACK_ID_OFFSET);
        if (!isWhole(call)) {
            return;
        }
        if (!session.graphCallbacks().acknowledge(callbackId) && !session.callbacks().acknowledge(callbackId)) {
            call.fatal("CALLBACK_DONE must answer a CALLBACK: callbackId=" + callbackId);
            return;
        }
        call.finish(CudaResult.SUCCESS);
    }

    private static void follows(Session session, Call call) {
        call.in().begin(RecordLayout.FOLLOWS_FIXED_BYTES);
        if (isWhole(call)) {
            session.moving().follow();
            call.finish(CudaResult.SUCCESS);
        }
    }

    private static void left(Session session, Call call) {
        call.in().begin(RecordLayout.LEFT_FIXED_BYTES);
        String reason = call.in().string(RecordLayout.LEFT_REASON_OFFSET, RecordLayout.MAX_TEXT_BYTES);
        if (!isWhole(call)) {
            return;
        }
        if (!session.moving().left(reason)) {
            call.fatal("LEFT must answer a LEAVE");
            return;
        }
        call.finish(CudaResult.SUCCESS);
    }

    private static boolean isWhole(Call call) {
        if (call.in().end()) {
            return true;
        }
        call.fatal("malformed control record: " + call.in().reason());
        return false;
    }
}
