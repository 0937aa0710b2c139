package io.hawser.gpu.software.nccl;

import java.io.IOException;
import java.lang.foreign.MemorySegment;

/**
 * The connection of a rank to another. Messages arrive in order. One thread sends and one receives at a time; close is
 * for any thread.
 */
abstract class Link {
    /** All of the worker's memory, of which the caller has checked parts. */
    static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    /** The ranks do not do the same: a message has another length than the receiver awaits. */
    static final class MismatchException extends IOException {
        private static final long serialVersionUID = 1L;

        MismatchException(long sent, long awaited) {
            super("ranks of a communicator must do the same: sentBytes=" + sent + " awaitedBytes=" + awaited);
        }
    }

    /**
     * Sends a message. Returns when the memory may change.
     *
     * @throws IOException when the other rank has gone, or the link is closed.
     */
    abstract void send(MemorySegment data) throws IOException;

    /**
     * Receives a message of exactly this length.
     *
     * @throws IOException when the other rank has gone, the link is closed, or the message is another one.
     */
    abstract void receive(MemorySegment into) throws IOException;

    /** Ends both directions at both ranks; threads that send or receive fail. */
    abstract void close();
}
