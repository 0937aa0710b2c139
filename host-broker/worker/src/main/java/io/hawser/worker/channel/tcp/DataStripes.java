package io.hawser.worker.channel.tcp;

import io.hawser.worker.channel.DataLanes;
import io.hawser.worker.memory.StagingPool.Staging;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The stripes that carry DATA, and the pieces of copies that wait for one of them. Each stripe's thread takes the next
 * piece when it has sent the one before.
 */
final class DataStripes implements DataLanes {
    /**
     * A piece of a copy, in memory of its own.
     *
     * @param sequence sequence number of the copy's request.
     * @param offsetBytes the piece's offset in the copy.
     * @param memory begins with the bytes, and is a multiple of 8 long.
     * @param bytes their number.
     * @param sent runs once, when the bytes have been sent or never will be; any thread.
     */
    record Piece(long sequence, long offsetBytes, MemorySegment memory, int bytes, Runnable sent) {
        /** Ends the threads. The thread that takes it puts it back for the next one. */
        static final Piece END = new Piece(0, 0, MemorySegment.NULL, 0, () -> {
        });
    }

    /** Sends pieces by one stripe. */
    @FunctionalInterface
    interface Sender {
        /**
         * Sends a piece, and waits until the kernel has taken it.
         *
         * @return false when the connection has ended.
         * @throws IOException if the connection fails.
         */
        boolean send(Piece piece) throws IOException;
    }

    // The buffers for copies to the guest bound the number of pieces.
    private final BlockingQueue<Piece> waiting = new LinkedBlockingQueue<>();
    private final AtomicInteger unsent = new AtomicInteger();
    private volatile boolean isOpen;
    private volatile boolean isOver; // no thread sends any more

    @Override
    public boolean isOpen() {
        return isOpen;
    }

    @Override
    public void send(long sequence, long offsetBytes, Staging piece, int bytes, Runnable sent) {
        unsent.incrementAndGet();
        waiting.add(new Piece(sequence, offsetBytes, piece.segment(), bytes, sent));
        if (isOver) { // after the addition, so that either this thread or drop() finds the piece
            releaseAll();
        }
    }

    /**
     * Sends pieces by a stripe until {@link #shutdown}. On the stripe's thread.
     *
     * @return false when the stripe's connection has ended before.
     * @throws IOException if the connection fails.
     */
    boolean serve(Sender sender) throws IOException {
        isOpen = true;
        try {
            for (Piece next = waiting.take(); next != Piece.END; next = waiting.take()) {
                try {
                    if (!sender.send(next)) {
                        return false;
                    }
                } finally {
                    next.sent.run();
                    unsent.decrementAndGet();
                }
            }
            waiting.add(Piece.END);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the process ends
        }
        return true;
    }

    /** Whether the kernel has taken all pieces. Any thread. */
    boolean isIdle() {
        return unsent.get() == 0;
    }

    /** Ends the threads when they have sent the pieces before. Any thread. */
    void shutdown() {
        waiting.add(Piece.END);
    }

    /** Drops the pieces that are left, and later ones, whose memory is free then. After the end of all threads. */
    void drop() {
        isOver = true;
        releaseAll();
    }

    private void releaseAll() {
        for (Piece left = waiting.poll(); left != null; left = waiting.poll()) {
            left.sent.run();
        }
    }
}
