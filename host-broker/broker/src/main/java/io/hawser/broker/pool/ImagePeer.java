package io.hawser.broker.pool;

import io.hawser.broker.posix.PosixException;

/** A worker, as far as images go. */
public interface ImagePeer {
    /** Its number, for the log. */
    long id();

    /**
     * Gives it an image's memory: to write ({@code store}) or to read ({@code image}). The caller still owns its
     * copy of the descriptor.
     *
     * @throws PosixException when the worker does not take it; it is of no further use then.
     */
    void giveImage(String type, String sha256, long bytes, int descriptor) throws PosixException;

    /** Tells it that an image is kept no more. */
    void tellNoImage(String sha256);
}
