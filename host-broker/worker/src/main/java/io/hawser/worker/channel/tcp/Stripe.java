package io.hawser.worker.channel.tcp;

import io.hawser.shm.os.StreamSocket;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * A further connection of a session, by which bytes of long copies travel (wire.md, "Stripes"). One thread receives
 * bytes into the stripe's chunks, another sends the bytes of chunks that the GPU has filled. After READ the first
 * thread sends DATA instead, and receives nothing more.
 */
final class Stripe {
    private static final Logger LOG = System.getLogger(Stripe.class.getName());
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final int FILL_BYTES = RecordLayout.HEADER_BYTES + RecordLayout.FILL_FIXED_BYTES;
    private static final int READ_BYTES = RecordLayout.HEADER_BYTES + RecordLayout.READ_FIXED_BYTES; // as of FILL
    private static final int DATA_BYTES = RecordLayout.HEADER_BYTES + RecordLayout.DATA_FIXED_BYTES;
    private static final int DONE_BYTES = RecordLayout.HEADER_BYTES + RecordLayout.DONE_FIXED_BYTES;

    /**
     * Ways to end the session, for a reason of one line. Any thread.
     *
     * @param refuse because the guest has broken a rule.
     * @param lose because a connection has ended.
     */
    record Ends(Consumer<String> refuse, Consumer<String> lose) {
    }

    /** A chunk that the guest gets back, with the bytes of a copy to the host. */
    private record Done(int chunk, int result, int bytes) {
        private static final int NO_CHUNK = 0;
        /** Ends the sender. */
        static final Done END = new Done(NO_CHUNK, 0, 0);

        boolean isEnd() {
            return chunk == NO_CHUNK;
        }
    }

    private final StreamSocket socket;
    private final int firstChunk;
    private final MemorySegment memory;
    private final DataStripes data;
    private final Ends ends;
    private final BlockingQueue<Done> done = new LinkedBlockingQueue<>(); // at most one for each chunk, and END
    private final AtomicIntegerArray taken = new AtomicIntegerArray(RecordLayout.STRIPE_CHUNKS); // 1: by a copy
    private final AtomicLong receivedBytes = new AtomicLong();
    private final AtomicLong sentBytes = new AtomicLong();
    private final Thread receiver;
    private final Thread sender;
    private final Object sending = new Object(); // held for each record that is sent

    /**
     * Starts to serve a connection, whose guest gets JOINED.
     *
     * @param socket the connection; this stripe closes it.
     * @param firstChunk number of the first chunk.
     * @param memory the chunks, which this stripe uses until {@link #close}.
     * @param data the pieces that this stripe sends after READ.
     * @param ends ends the session.
     */
    Stripe(StreamSocket socket, int firstChunk, MemorySegment memory, DataStripes data, Ends ends) {
        this.socket = socket;
        this.firstChunk = firstChunk;
        this.memory = memory;
        this.data = data;
        this.ends = ends;
        int number = (firstChunk - RecordLayout.FIRST_STRIPE_CHUNK) / RecordLayout.STRIPE_CHUNKS;
        receiver = new Thread(this::receive, "stripe-in-" + number);
        sender = new Thread(this::send, "stripe-out-" + number);
        receiver.setDaemon(true);
        sender.setDaemon(true);
    }

    void start() {
        receiver.start();
        sender.start();
    }

    private int offset(int chunk) {
        return (chunk - firstChunk) * RecordLayout.STRIPE_CHUNK_BYTES;
    }

    /** The bytes of a chunk. */
    MemorySegment bytes(int chunk) {
        return memory.asSlice(offset(chunk), RecordLayout.STRIPE_CHUNK_BYTES);
    }

    boolean isTaken(int chunk) {
        return taken.get(chunk - firstChunk) != 0;
    }

    void take(int chunk) {
        taken.set(chunk - firstChunk, 1);
    }

    /**
     * Gives a taken chunk back to the guest. Any thread; never waits.
     *
     * @param chunk its number.
     * @param result CUresult of the copy.
     * @param bytes number of the chunk's first bytes that travel with it; 0 after a copy to the device.
     */
    void giveBack(int chunk, int result, int bytes) {
        done.add(new Done(chunk, result, bytes));
    }

    private void receive() {
        MemorySegment header = Arena.ofAuto().allocate(FILL_BYTES, RecordLayout.ALIGNMENT_BYTES);
        MemorySegment answer = Arena.ofAuto().allocate(DONE_BYTES, RecordLayout.ALIGNMENT_BYTES);
        try {
            boolean isOpen = send(answer, RecordLayout.CONTROL_JOINED, firstChunk, 0, 0);
            while (isOpen && socket.receive(header, 0, FILL_BYTES)) {
                int chunk = header.get(INT, RecordLayout.HEADER_BYTES + RecordLayout.FILL_CHUNK_OFFSET);
                int bytes = header.get(INT, RecordLayout.HEADER_BYTES + RecordLayout.FILL_BYTES_OFFSET);
                if (isRead(header, chunk, bytes)) {
                    receivedBytes.addAndGet(READ_BYTES);
                    sendData();
                    return;
                }
                if (!isFill(header, chunk, bytes)) {
                    ends.refuse.accept("a stripe's guest must send FILL for a chunk of the stripe, or READ: opcode=0x"
                        + Integer.toHexString(header.get(INT, RecordLayout.OPCODE_OFFSET)) + " chunk="
                        + Integer.toUnsignedString(chunk) + " bytes=" + Integer.toUnsignedString(bytes));
                    return;
                }
                if (!socket.receive(memory, offset(chunk), padded(bytes))) {
                    return;
                }
                receivedBytes.addAndGet(FILL_BYTES + (long) padded(bytes));
                isOpen = send(answer, RecordLayout.CONTROL_FILLED, chunk, 0, 0);
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "a stripe''s connection failed: {0}", e.getMessage());
        } finally {
            socket.shutdown(); // the guest must not wait for answers
        }
    }

    /** Whether the header's fields are 0 that a stripe does not use. */
    private static boolean isPlain(MemorySegment header) {
        return header.get(LONG, RecordLayout.SEQUENCE_OFFSET) == 0 && header.get(LONG, RecordLayout.THREAD_OFFSET) == 0
            && header.get(LONG, RecordLayout.FLAGS_OFFSET) == 0;
    }

    private boolean isRead(MemorySegment header, int first, int padding) {
        return header.get(INT, RecordLayout.OPCODE_OFFSET) == RecordLayout.CONTROL_READ && isPlain(header)
            && first == firstChunk && padding == 0 && header.get(INT, RecordLayout.LENGTH_OFFSET) == READ_BYTES;
    }

    private boolean isFill(MemorySegment header, int chunk, int bytes) {
        return header.get(INT, RecordLayout.OPCODE_OFFSET) == RecordLayout.CONTROL_FILL
            && isPlain(header) && chunk >= firstChunk && chunk < firstChunk + RecordLayout.STRIPE_CHUNKS
            && bytes > 0 && bytes <= RecordLayout.STRIPE_CHUNK_BYTES
            && header.get(INT, RecordLayout.LENGTH_OFFSET) == FILL_BYTES + padded(bytes);
    }

    private static int padded(int bytes) {
        return bytes + RecordLayout.ALIGNMENT_BYTES - 1 & -RecordLayout.ALIGNMENT_BYTES;
    }

    /** Sends pieces of copies until the end of the session, which a lost stripe causes: its guest waits for them. */
    private void sendData() throws IOException {
        MemorySegment record = Arena.ofAuto().allocate(DATA_BYTES, RecordLayout.ALIGNMENT_BYTES);
        boolean isOver = false;
        try {
            isOver = data.serve(piece -> send(record, piece));
        } finally {
            if (!isOver) {
                ends.lose.accept("a connection that carries data of copies has ended");
            }
        }
    }

    private boolean send(MemorySegment record, DataStripes.Piece piece) throws IOException {
        record.fill((byte) 0);
        record.set(INT, RecordLayout.LENGTH_OFFSET, DATA_BYTES + padded(piece.bytes()));
        record.set(INT, RecordLayout.OPCODE_OFFSET, RecordLayout.CONTROL_DATA);
        record.set(LONG, RecordLayout.SEQUENCE_OFFSET, piece.sequence());
        record.set(LONG, RecordLayout.HEADER_BYTES + RecordLayout.DATA_OFFSET_BYTES_OFFSET, piece.offsetBytes());
        record.set(INT, RecordLayout.HEADER_BYTES + RecordLayout.DATA_BYTES_OFFSET, piece.bytes());
        return send(record, DATA_BYTES, piece.memory(), piece.bytes());
    }

    private void send() {
        MemorySegment record = Arena.ofAuto().allocate(DONE_BYTES, RecordLayout.ALIGNMENT_BYTES);
        try {
            for (Done next = done.take(); !next.isEnd(); next = done.take()) {
                taken.set(next.chunk - firstChunk, 0); // first: the guest may use it as soon as it reads the record
                if (!send(record, RecordLayout.CONTROL_DONE, next.chunk, next.result, next.bytes)) {
                    return;
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends
        } catch (IOException e) {
            LOG.log(Level.WARNING, "a stripe''s connection failed: {0}", e.getMessage());
        } finally {
            socket.shutdown();
        }
    }

    /** Sends JOINED, FILLED or DONE; the first two have neither a result nor bytes. */
    private boolean send(MemorySegment record, int opcode, int chunk, int result, int bytes) throws IOException {
        boolean isDone = opcode == RecordLayout.CONTROL_DONE;
        int length = isDone ? DONE_BYTES : RecordLayout.HEADER_BYTES + RecordLayout.FILLED_FIXED_BYTES;
        record.fill((byte) 0);
        record.set(INT, RecordLayout.LENGTH_OFFSET, length + padded(bytes));
        record.set(INT, RecordLayout.OPCODE_OFFSET, opcode);
        record.set(INT, RecordLayout.HEADER_BYTES, chunk); // the first field of all three
        if (isDone) {
            record.set(INT, RecordLayout.HEADER_BYTES + RecordLayout.DONE_RESULT_OFFSET, result);
            record.set(INT, RecordLayout.HEADER_BYTES + RecordLayout.DONE_BYTES_OFFSET, bytes);
        }
        return send(record, length, bytes(chunk), bytes);
    }

    /** Sends a record: its first part, and this number of bytes of the memory. */
    private boolean send(MemorySegment record, int length, MemorySegment from, int bytes) throws IOException {
        // The bytes there belong to this session, so no secret leaks, but the wire format demands zeros.
        from.asSlice(bytes, padded(bytes) - bytes).fill((byte) 0);
        synchronized (sending) {
            if (!socket.send(record, 0, length, bytes > 0)
                || bytes > 0 && !socket.send(from, 0, padded(bytes), false)) {
                return false;
            }
        }
        sentBytes.addAndGet(length + (long) padded(bytes));
        return true;
    }

    long receivedBytes() {
        return receivedBytes.get();
    }

    long sentBytes() {
        return sentBytes.get();
    }

    /** Ends the connection: the threads end soon. Any thread. */
    void shutdown() {
        socket.shutdown();
        done.add(Done.END);
    }

    /**
     * Waits for the threads after {@link #shutdown}, and closes the socket.
     *
     * @param limitMs the longest wait for each.
     * @return false if a thread still runs, and may use the chunks.
     */
    boolean close(long limitMs) {
        try {
            receiver.join(limitMs);
            sender.join(limitMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends
        }
        if (receiver.isAlive() || sender.isAlive()) {
            return false;
        }
        socket.close();
        return true;
    }
}
