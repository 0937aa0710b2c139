package io.hawser.worker.channel;

import io.hawser.shm.RecordLayout;
import io.hawser.shm.RecordWriter;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOutboundBuffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Records on their way to the guest. Small ones gather in one buffer until {@link #flush}, so that a burst of replies
 * costs one system call; data of copies is sent from where it lies. Session thread only.
 */
public final class Outbox {
    /** Records of a guest that asks and does not read; past this nothing more is read from it. */
    public static final long MAX_UNREAD_BYTES = 4L << 20;

    private static final int GATHER_BYTES = 16 * 1024;
    private static final int DATA_PREFIX_BYTES = RecordLayout.DATA_FIXED_BYTES;

    private final Channel channel;
    private final RecordWriter writer = new RecordWriter(GATHER_BYTES);
    private ByteBuf gathered;
    private long dataBytes;
    private long sentBytes;

    /**
     * Makes an empty outbox.
     *
     * @param channel the guest's.
     */
    public Outbox(Channel channel) {
        this.channel = channel;
    }

    /**
     * Appends a record that has been written elsewhere.
     *
     * @param record a writer after its {@code end()}.
     * @param lengthBytes what {@code end()} gave.
     */
    public void append(RecordWriter record, int lengthBytes) {
        room(lengthBytes).writeBytes(record.array(), 0, lengthBytes);
        sentBytes += lengthBytes;
    }

    /**
     * Appends a reply without outputs.
     *
     * @param opcode the request's.
     * @param sequence the request's.
     * @param thread the request's.
     * @param context the request's.
     * @param status its result.
     */
    public void reply(int opcode, long sequence, int thread, int context, int status) {
        append(writer.begin(opcode | RecordLayout.REPLY_BIT, sequence, thread, context, status), writer.end());
    }

    /**
     * Appends WELCOME.
     *
     * @param sessionId the broker's number of the session.
     * @param deviceCount devices that the session sees.
     * @param creditWindowBytes size of the credit window.
     * @param descriptionHash of the API description that this worker was built with.
     */
    public void welcome(long sessionId, int deviceCount, long creditWindowBytes, long descriptionHash) {
        control(RecordLayout.CONTROL_WELCOME, RecordLayout.WELCOME_FIXED_BYTES);
        writer.i32(RecordLayout.WELCOME_PROTOCOL_VERSION_OFFSET, RecordLayout.PROTOCOL_VERSION);
        writer.i32(RecordLayout.WELCOME_DEVICE_COUNT_OFFSET, deviceCount);
        writer.i64(RecordLayout.WELCOME_SESSION_ID_OFFSET, sessionId);
        writer.i64(RecordLayout.WELCOME_CREDIT_WINDOW_BYTES_OFFSET, creditWindowBytes);
        writer.i32(RecordLayout.WELCOME_MAX_RECORD_BYTES_OFFSET, RecordLayout.MAX_RECORD_BYTES);
        writer.i32(RecordLayout.WELCOME_MAX_BULK_BYTES_OFFSET, RecordLayout.MAX_BULK_BYTES);
        writer.i64(RecordLayout.WELCOME_DESCRIPTION_HASH_OFFSET, descriptionHash);
        append(writer, writer.end());
    }

    /**
     * Appends CREDIT.
     *
     * @param releasedBytes total since the session began.
     */
    public void credit(long releasedBytes) {
        control(RecordLayout.CONTROL_CREDIT, RecordLayout.CREDIT_FIXED_BYTES);
        writer.i64(RecordLayout.CREDIT_RELEASED_BYTES_OFFSET, releasedBytes);
        append(writer, writer.end());
    }

    /**
     * Appends CALLBACK.
     *
     * @param callbackId the guest's.
     * @param status of the stream.
     */
    public void callback(long callbackId, int status) {
        control(RecordLayout.CONTROL_CALLBACK, RecordLayout.CALLBACK_FIXED_BYTES);
        writer.i64(RecordLayout.CALLBACK_CALLBACK_ID_OFFSET, callbackId);
        writer.i32(RecordLayout.CALLBACK_STATUS_OFFSET, status);
        append(writer, writer.end());
    }

    /**
     * Appends OUTPUT records.
     *
     * @param text what a kernel has printed, of any length.
     */
    public void output(byte[] text) {
        int piece = RecordLayout.MAX_BULK_BYTES;
        for (int at = 0; at < text.length; at += piece) {
            control(RecordLayout.CONTROL_OUTPUT, RecordLayout.OUTPUT_FIXED_BYTES);
            int end = Math.min(at + piece, text.length);
            writer.buffer(RecordLayout.OUTPUT_BYTES_OFFSET,
                MemorySegment.ofArray(Arrays.copyOfRange(text, at, end)));
            append(writer, writer.end());
        }
    }

    /**
     * Appends LOST.
     *
     * @param result the CUDA error that the guest's calls get from now on.
     * @param reason one line; cut at the limit of a control record's text.
     */
    public void lost(int result, String reason) {
        control(RecordLayout.CONTROL_LOST, RecordLayout.LOST_FIXED_BYTES);
        writer.i32(RecordLayout.LOST_RESULT_OFFSET, result);
        byte[] text = reason.getBytes(StandardCharsets.UTF_8);
        String cut = text.length <= RecordLayout.MAX_TEXT_BYTES ? reason
            : reason.substring(0, Math.min(reason.length(), RecordLayout.MAX_TEXT_BYTES / 4));
        writer.string(RecordLayout.LOST_REASON_OFFSET, cut);
        append(writer, writer.end());
    }

    /**
     * Sends a piece of a device-to-host copy from where it lies, after what was appended before.
     *
     * @param sequence the copy's request.
     * @param offsetBytes where the piece belongs in the copy.
     * @param piece its bytes, direct memory of which whole multiples of 8 may be sent; untouched until {@code sent}.
     * @param bytes their number, 1..MAX_BULK_BYTES.
     * @param sent run on the session thread when the bytes have left or never will.
     */
    public void data(long sequence, long offsetBytes, ByteBuffer piece, int bytes, Runnable sent) {
        int padded = bytes + RecordLayout.ALIGNMENT_BYTES - 1 & -RecordLayout.ALIGNMENT_BYTES;
        int lengthBytes = RecordLayout.HEADER_BYTES + DATA_PREFIX_BYTES + padded;
        writer.begin(RecordLayout.CONTROL_DATA, sequence, 0, 0, 0);
        writer.fixed(DATA_PREFIX_BYTES);
        writer.i64(RecordLayout.DATA_OFFSET_BYTES_OFFSET, offsetBytes);
        writer.i32(RecordLayout.DATA_BYTES_OFFSET, bytes);
        int prefixBytes = writer.end();
        // The writer knows only the prefix: the length is that of the prefix and the bytes behind it.
        writer.memory().set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.LENGTH_OFFSET, lengthBytes);
        if (bytes <= GATHER_BYTES / 4) {
            room(lengthBytes).writeBytes(writer.array(), 0, prefixBytes);
            piece.limit(bytes).position(0);
            gathered.writeBytes(piece).writeZero(padded - bytes);
            piece.clear();
            sentBytes += lengthBytes;
            sent.run();
            return;
        }
        append(writer, prefixBytes);
        writeGathered();
        for (int i = bytes; i < padded; i++) {
            piece.put(i, (byte) 0); // what lay there before is the session's own, but the wire says zero
        }
        sentBytes += padded;
        dataBytes += padded;
        channel.write(Unpooled.wrappedBuffer(piece.slice(0, padded))).addListener(done -> {
            dataBytes -= padded;
            sent.run();
        });
    }

    /** Sends what has gathered. */
    public void flush() {
        writeGathered();
        channel.flush();
    }

    /**
     * Replies and the like that the guest has not read yet, without data of copies, which is bounded elsewhere.
     *
     * @return bytes, including a small cost for each write.
     */
    public long unreadBytes() {
        ChannelOutboundBuffer outbound = channel.unsafe().outboundBuffer();
        return outbound == null ? 0 : outbound.totalPendingWriteBytes() - dataBytes;
    }

    /**
     * All that was ever sent.
     *
     * @return record bytes.
     */
    public long sentBytes() {
        return sentBytes;
    }

    /** Frees what was never sent. */
    public void close() {
        if (gathered != null) {
            gathered.release();
            gathered = null;
        }
    }

    private void control(int opcode, int fixedBytes) {
        writer.begin(opcode, 0, 0, 0, 0).fixed(fixedBytes);
    }

    private ByteBuf room(int bytes) {
        if (gathered != null && gathered.writableBytes() < bytes) {
            writeGathered();
        }
        if (gathered == null) {
            gathered = channel.alloc().directBuffer(Math.max(bytes, GATHER_BYTES));
        }
        return gathered;
    }

    private void writeGathered() {
        if (gathered != null && gathered.isReadable()) {
            ByteBuf full = gathered;
            gathered = null;
            channel.write(full, channel.voidPromise());
        }
    }
}
