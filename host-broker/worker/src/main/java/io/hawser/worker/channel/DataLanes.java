package io.hawser.worker.channel;

import io.hawser.worker.memory.StagingPool.Staging;

/** Connections beside the session's own that carry DATA of long copies to the guest. Session thread. */
public interface DataLanes {
    /** Without lanes, all DATA goes by the session's connection. */
    DataLanes NONE = new DataLanes() {
        @Override
        public boolean isOpen() {
            return false;
        }

        @Override
        public void send(long sequence, long offsetBytes, Staging piece, int bytes, Runnable sent) {
            throw new IllegalStateException("DATA must go by lanes that are open: sequence=" + sequence);
        }
    };

    /** Whether the guest receives DATA by a lane. True from the first lane on, until the session ends. */
    boolean isOpen();

    /**
     * Sends a piece of a copy in DATA, in no order with other records. Never waits. Call it only while {@link #isOpen}.
     *
     * @param sequence sequence number of the copy's request.
     * @param offsetBytes the piece's offset in the copy.
     * @param piece memory that begins with the bytes and is a multiple of 8 long; must not change until {@code sent}.
     * @param bytes their number, 1..MAX_BULK_BYTES.
     * @param sent runs when the bytes have been sent or never will be; any thread.
     */
    void send(long sequence, long offsetBytes, Staging piece, int bytes, Runnable sent);
}
