package io.hawser.worker.channel.tcp;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.os.StreamSocket;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * A further connection of a session, by which bytes of long copies travel (wire.md, "Stripes"). One thread receives
 * bytes into the stripe's chunks, another sends the bytes of chunks that the GPU has filled. After READ the first
 * thread sends DATA instead, and receives nothing more. Between two records the stripe can pause, so that another
 * worker goes on with its connection.
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
    private final AtomicInteger unsent = new AtomicInteger(); // chunks that the guest has not got back yet
    private final AtomicIntegerArray taken = new AtomicIntegerArray(RecordLayout.STRIPE_CHUNKS); // 1: by a copy
    private final AtomicIntegerArray filledBytes = new AtomicIntegerArray(RecordLayout.STRIPE_CHUNKS); // for a copy
    private final AtomicLong receivedBytes = new AtomicLong();
    private final AtomicLong sentBytes = new AtomicLong();
    private final Thread receiver;
    private final Thread sender;
    private final Object sending = new Object(); // held for each record that is sent
    private final EventFd event; // wakes the receiver
    private final Object parking = new Object(); // held for the next four fields
    private boolean isPaused;
    private boolean isParked; // the receiver is between two records
    private boolean isReading; // READ has come
    private boolean isOver;
    private boolean hasJoined; // set before the threads start
    private volatile boolean isOthers; // another process serves the connection

    /**
     * Prepares to serve a connection.
     *
     * @param socket the connection; this stripe closes it.
     * @param firstChunk number of the first chunk.
     * @param memory the chunks, which this stripe uses until {@link #close}.
     * @param data the pieces that this stripe sends after READ.
     * @param ends ends the session.
     * @throws IOException if the process has too many descriptors; the socket is then still the caller's.
     */
    Stripe(StreamSocket socket, int firstChunk, MemorySegment memory, DataStripes data, Ends ends)
        throws IOException {
        event = EventFd.create();
        this.socket = socket;
        this.firstChunk = firstChunk;
        this.memory = memory;
        this.data = data;
        this.ends = ends;
        int number = (firstChunk - RecordLayout.FIRST_STRIPE_CHUNK) / RecordLayout.STRIPE_CHUNKS;
        receiver = new Thread(this::serve, "stripe-in-" + number);
        sender = new Thread(this::send, "stripe-out-" + number);
        receiver.setDaemon(true);
        sender.setDaemon(true);
    }

    /** Serves the guest, which first gets JOINED from a new stripe. */
    void start() {
        isOthers = false;
        receiver.start();
        sender.start();
    }

    /** Takes the place of a stripe that another worker has paused. That worker serves the guest until the start. */
    void resume(StripeState state) {
        for (int i = 0; i < RecordLayout.STRIPE_CHUNKS; i++) {
            MemorySegment bytes = state.chunks().get(i);
            MemorySegment.copy(bytes, 0, memory, (long) i * RecordLayout.STRIPE_CHUNK_BYTES, bytes.byteSize());
            filledBytes.set(i, (int) bytes.byteSize());
        }
        isReading = state.isReading();
        hasJoined = true;
        isOthers = true;
    }

    /** Stops the receiver before the next record. Any thread. */
    void pause() throws IOException {
        synchronized (parking) {
            isPaused = true;
        }
        event.signal();
    }

    /** Whether the stripe has paused, and the guest has got all that it waits for. */
    boolean isStill() {
        if (!receiver.isAlive() && !sender.isAlive()) {
            return true; // the guest has ended the connection
        }
        boolean isIdle = unsent.get() == 0;
        synchronized (parking) {
            isIdle &= isReading || isPaused && isParked;
        }
        for (int i = 0; i < RecordLayout.STRIPE_CHUNKS; i++) {
            isIdle &= taken.get(i) == 0;
        }
        return isIdle;
    }

    /** The place where another worker goes on. The stripe {@link #isStill}. */
    StripeState state() {
        List<MemorySegment> chunks = new ArrayList<>();
        for (int i = 0; i < RecordLayout.STRIPE_CHUNKS; i++) {
            chunks.add(memory.asSlice((long) i * RecordLayout.STRIPE_CHUNK_BYTES, filledBytes.get(i)));
        }
        synchronized (parking) {
            return new StripeState(isReading, chunks);
        }
    }

    /** The connection's descriptor, which stays this stripe's. */
    int descriptor() {
        return socket.descriptor();
    }

    /** Goes on after {@link #pause}. Any thread. */
    void proceed() {
        synchronized (parking) {
            isPaused = false;
            parking.notifyAll();
        }
    }

    /** Waits for the next record, and before it for the end of a pause; false at the end of the connection. */
    private boolean awaitRecord() throws IOException, InterruptedException {
        while (true) {
            synchronized (parking) {
                isParked = true;
                while (isPaused && !isOver) {
                    parking.wait();
                }
                isParked = false;
                if (isOver) {
                    return false;
                }
            }
            if (socket.await(event)) {
                return true;
            }
            event.poll(0);
        }
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
        filledBytes.set(chunk - firstChunk, 0);
    }

    /**
     * Gives a taken chunk back to the guest. Any thread; never waits.
     *
     * @param chunk its number.
     * @param result CUresult of the copy.
     * @param bytes number of the chunk's first bytes that travel with it; 0 after a copy to the device.
     */
    void giveBack(int chunk, int result, int bytes) {
        unsent.incrementAndGet();
        done.add(new Done(chunk, result, bytes));
    }

    private void serve() {
        try {
            receive();
        } catch (IOException e) {
            LOG.log(Level.WARNING, "a stripe''s connection failed: {0}", e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends
        } finally {
            endConnection(); // the guest must not wait for answers
            done.add(Done.END);
        }
    }

    private void receive() throws IOException, InterruptedException {
        if (isReading()) {
            sendData();
            return;
        }
        MemorySegment header = Arena.ofAuto().allocate(FILL_BYTES, RecordLayout.ALIGNMENT_BYTES);
        MemorySegment answer = Arena.ofAuto().allocate(DONE_BYTES, RecordLayout.ALIGNMENT_BYTES);
        boolean isOpen = hasJoined || send(answer, RecordLayout.CONTROL_JOINED, firstChunk, 0, 0);
        while (isOpen && awaitRecord() && socket.receive(header, 0, FILL_BYTES)) {
            int chunk = header.get(INT, RecordLayout.HEADER_BYTES + RecordLayout.FILL_CHUNK_OFFSET);
            int bytes = header.get(INT, RecordLayout.HEADER_BYTES + RecordLayout.FILL_BYTES_OFFSET);
            if (isRead(header, chunk, bytes)) {
                receivedBytes.addAndGet(READ_BYTES);
                synchronized (parking) {
                    isReading = true;
                }
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
            filledBytes.set(chunk - firstChunk, bytes);
            receivedBytes.addAndGet(FILL_BYTES + (long) padded(bytes));
            isOpen = send(answer, RecordLayout.CONTROL_FILLED, chunk, 0, 0);
        }
    }

    private boolean isReading() {
        synchronized (parking) {
            return isReading;
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
                unsent.decrementAndGet();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends
        } catch (IOException e) {
            LOG.log(Level.WARNING, "a stripe''s connection failed: {0}", e.getMessage());
        } finally {
            endConnection();
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
        endConnection();
        done.add(Done.END);
        synchronized (parking) {
            isOver = true;
            parking.notifyAll();
        }
    }

    /** Leaves the connection to another process: {@link #shutdown} then ends only the threads. */
    void leave() {
        isOthers = true;
    }

    private void endConnection() {
        if (!isOthers) {
            socket.shutdown();
        }
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
        event.close();
        return true;
    }
}
