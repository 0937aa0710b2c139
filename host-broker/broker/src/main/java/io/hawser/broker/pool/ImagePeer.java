package io.hawser.broker.pool;

import io.hawser.broker.posix.PosixException;
import io.hawser.shm.control.BrokerMessageType;

/** The image store's view of a worker. */
public interface ImagePeer {
    /** Number of the worker, for the log. */
    long id();

    /**
     * Sends the worker an image's memory, to write (STORE) or to read (IMAGE). The caller keeps its copy of the
     * descriptor and closes it.
     *
     * @throws PosixException when the send fails; the worker is then unusable.
     */
    void giveImage(BrokerMessageType type, String sha256, long bytes, int descriptor) throws PosixException;

    /** Notifies the worker that the broker no longer keeps an image. */
    void sendImageDropped(String sha256);
}
