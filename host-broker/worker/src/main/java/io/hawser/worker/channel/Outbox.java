package io.hawser.worker.channel;

import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Builds the worker's records for the guest and counts them; its {@link Link} sends them. Session thread only. */
public final class Outbox {
    /**
     * Beyond this the worker reads no more requests. Stops a guest that sends requests and does not read the replies.
     */
    public static final long MAX_UNREAD_BYTES = 4L << 20;

    private static final int CAPACITY_BYTES = 16 * 1024;

    private final Link link;
    private final RecordWriter writer = new RecordWriter(CAPACITY_BYTES);
    private DataLanes lanes = DataLanes.NONE;
    private long sentBytes;

    /**
     * Makes an empty outbox.
     *
     * @param link the link to the guest.
     */
    public Outbox(Link link) {
        this.link = link;
    }

    /**
     * Appends a record that another object has built.
     *
     * @param record a writer after its {@code end()}.
     * @param lengthBytes result of {@code end()}.
     */
    public void append(RecordWriter record, int lengthBytes) {
        link.append(record, lengthBytes);
        sentBytes += lengthBytes;
    }

    /** Uses lanes for data from now on. */
    public void useLanes(DataLanes given) {
        lanes = given;
    }

    /** Whether lanes can carry data. */
    public boolean hasLanes() {
        return lanes.isOpen();
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
     * @param mayLeave whether LEAVE may follow some day.
     */
    public void welcome(long sessionId, int deviceCount, long creditWindowBytes, long descriptionHash,
        boolean mayLeave) {
        writer.begin(RecordLayout.CONTROL_WELCOME, 0, 0, 0, mayLeave ? RecordLayout.FLAG_MAY_LEAVE : 0)
            .fixed(RecordLayout.WELCOME_FIXED_BYTES);
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
     * Appends ANSWER.
     *
     * @param answer to the guest's offer; null for a guest that has offered nothing.
     */
    public void answer(Answer answer) {
        if (answer == null) {
            return;
        }
        control(RecordLayout.CONTROL_ANSWER, RecordLayout.ANSWER_FIXED_BYTES);
        writer.buffer(RecordLayout.ANSWER_END_OFFSET, MemorySegment.ofArray(answer.end()));
        writer.string(RecordLayout.ANSWER_REASON_OFFSET, cut(answer.reason()));
        append(writer, writer.end());
    }

    /** A text within the limit of a control record's text. */
    private static String cut(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length <= RecordLayout.MAX_TEXT_BYTES ? text
            : text.substring(0, Math.min(text.length(), RecordLayout.MAX_TEXT_BYTES / 4));
    }

    /**
     * Appends LEAVE.
     *
     * @param address of the broker where the guest shall connect.
     */
    public void leave(String address) {
        control(RecordLayout.CONTROL_LEAVE, RecordLayout.LEAVE_FIXED_BYTES);
        writer.string(RecordLayout.LEAVE_ADDRESS_OFFSET, address);
        append(writer, writer.end());
    }

    /** Appends STAY: the guest that has left goes on here. */
    public void stay() {
        control(RecordLayout.CONTROL_STAY, RecordLayout.STAY_FIXED_BYTES);
        append(writer, writer.end());
    }

    /** Appends RESUMED: the guest that has come from another broker goes on here. */
    public void resumed() {
        control(RecordLayout.CONTROL_RESUMED, RecordLayout.RESUMED_FIXED_BYTES);
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
     * @param callbackId the guest's number of the callback.
     * @param status the stream's status.
     */
    public void callback(long callbackId, int status) {
        control(RecordLayout.CONTROL_CALLBACK, RecordLayout.CALLBACK_FIXED_BYTES);
        writer.i64(RecordLayout.CALLBACK_CALLBACK_ID_OFFSET, callbackId);
        writer.i32(RecordLayout.CALLBACK_STATUS_OFFSET, status);
        append(writer, writer.end());
    }

    /**
     * Appends REACHED.
     *
     * @param eventId the guest's id of the event.
     * @param sequence sequence number of the request that recorded it.
     */
    public void reached(long eventId, long sequence) {
        writer.begin(RecordLayout.CONTROL_REACHED, sequence, 0, 0, 0).fixed(RecordLayout.REACHED_FIXED_BYTES);
        writer.i64(RecordLayout.REACHED_EVENT_ID_OFFSET, eventId);
        append(writer, writer.end());
    }

    /**
     * Appends OUTPUT records.
     *
     * @param text text that a kernel has printed, of any length.
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
     * @param result the CUDA error that the guest's calls return from now on.
     * @param reason one line; truncated at the limit of a control record's text.
     */
    public void lost(int result, String reason) {
        control(RecordLayout.CONTROL_LOST, RecordLayout.LOST_FIXED_BYTES);
        writer.i32(RecordLayout.LOST_RESULT_OFFSET, result);
        writer.string(RecordLayout.LOST_REASON_OFFSET, cut(reason));
        append(writer, writer.end());
    }

    /**
     * Sends a piece of a device-to-host copy from its own memory, after all records appended before.
     *
     * @param sequence sequence number of the copy's request.
     * @param offsetBytes the piece's offset in the copy.
     * @param piece memory that begins with the bytes and is a multiple of 8 long; must not change until {@code sent}.
     * @param bytes their number, 1..MAX_BULK_BYTES.
     * @param sent runs on the session thread when the bytes have been sent or never will be.
     */
    public void data(long sequence, long offsetBytes, Staging piece, int bytes, Runnable sent) {
        int padded = bytes + RecordLayout.ALIGNMENT_BYTES - 1 & -RecordLayout.ALIGNMENT_BYTES;
        writer.begin(RecordLayout.CONTROL_DATA, sequence, 0, 0, 0);
        writer.fixed(RecordLayout.DATA_FIXED_BYTES);
        writer.i64(RecordLayout.DATA_OFFSET_BYTES_OFFSET, offsetBytes);
        writer.i32(RecordLayout.DATA_BYTES_OFFSET, bytes);
        int prefixBytes = writer.end();
        // The writer knows only the prefix, so the record's length is set here: the prefix plus the bytes after it.
        writer.memory().set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.LENGTH_OFFSET, prefixBytes + padded);
        sentBytes += prefixBytes + padded;
        link.appendData(writer, prefixBytes, piece, bytes, sent);
    }

    /**
     * Sends a piece of a device-to-host copy by lanes, in no order with other records. Call it only while
     * {@link #hasLanes}, and {@link #awaitData} after the copy's last piece.
     *
     * @param sequence sequence number of the copy's request.
     * @param offsetBytes the piece's offset in the copy.
     * @param piece memory that begins with the bytes and is a multiple of 8 long; must not change until {@code sent}.
     * @param bytes their number, 1..MAX_BULK_BYTES.
     * @param sent runs when the bytes have been sent or never will be; any thread.
     */
    public void dataByLanes(long sequence, long offsetBytes, Staging piece, int bytes, Runnable sent) {
        lanes.send(sequence, offsetBytes, piece, bytes, sent);
    }

    /**
     * Memory of the guest that the worker may write, which no record needs to announce.
     *
     * @return null where the carrier cannot.
     */
    public GuestMemory guestMemory() {
        return link.guestMemory();
    }

    /**
     * Appends AWAIT: the guest delivers no later record before data of a copy that lanes carry.
     *
     * @param sequence sequence number of the copy's request.
     * @param bytes all that has been sent of the copy, by lanes or not; no more follows.
     */
    public void awaitData(long sequence, long bytes) {
        writer.begin(RecordLayout.CONTROL_AWAIT, sequence, 0, 0, 0).fixed(RecordLayout.AWAIT_FIXED_BYTES);
        writer.i64(RecordLayout.AWAIT_BYTES_OFFSET, bytes);
        append(writer, writer.end());
    }

    /** Sends all appended records. */
    public void flush() {
        link.flush();
    }

    /**
     * Records that the guest has not read yet, without data of copies, which the copies' buffers limit.
     *
     * @return bytes, as {@link Link#unreadBytes} counts them.
     */
    public long unreadBytes() {
        return link.unreadBytes();
    }

    /**
     * Total sent since the session began.
     *
     * @return record bytes.
     */
    public long sentBytes() {
        return sentBytes;
    }

    private void control(int opcode, int fixedBytes) {
        writer.begin(opcode, 0, 0, 0, 0).fixed(fixedBytes);
    }
}
