package io.hawser.worker.swap;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A frame between a session's worker and the keeper of its GPU: a request of the worker, or the keeper's reply to it. A
 * request to store or to load carries a descriptor of the slab's memory. Both sides are in the same build.
 *
 * @param action what to do.
 * @param slab number by which the worker names the slab.
 * @param bytes the slab's length.
 * @param result CUresult of a reply; 0 in a request.
 */
public record SlabFrame(Action action, long slab, long bytes, int result) {
    private static final int BYTES = 2 * Integer.BYTES + 2 * Long.BYTES;

    /** A request. */
    public enum Action {
        /** Copy the slab's bytes to the keeper. */
        STORE,
        /** Copy them back, and forget them. */
        LOAD
    }

    public SlabFrame {
        if (slab < 0 || bytes < 0) {
            throw new IllegalArgumentException("a slab needs a number and a length of 0 or more: slab=" + slab
                + " bytes=" + bytes);
        }
    }

    /** The reply to this request. */
    public SlabFrame reply(int cuResult) {
        return new SlabFrame(action, slab, bytes, cuResult);
    }

    /** The frame's bytes. */
    public byte[] encode() {
        return ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN).putInt(action.ordinal()).putInt(result)
            .putLong(slab).putLong(bytes).array();
    }

    /**
     * Reads a frame.
     *
     * @throws IOException when no honest peer sends it.
     */
    public static SlabFrame decode(byte[] frame) throws IOException {
        ByteBuffer in = ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
        if (frame.length == BYTES && in.getInt(0) >= 0 && in.getInt(0) < Action.values().length) {
            Action action = Action.values()[in.getInt()];
            int result = in.getInt();
            long slab = in.getLong();
            long bytes = in.getLong();
            if (slab >= 0 && bytes >= 0) {
                return new SlabFrame(action, slab, bytes, result);
            }
        }
        throw new IOException("a frame of a keeper must have an action, a slab and a length: bytes=" + frame.length);
    }
}
