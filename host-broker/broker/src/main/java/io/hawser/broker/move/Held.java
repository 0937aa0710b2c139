package io.hawser.broker.move;

/** A connection that the broker holds until a worker gets it. Event loop only. */
public interface Held {
    /** Its socket, which stays this one's. */
    int descriptor();

    /** Closes the broker's descriptor: a worker that has got its own keeps the connection. */
    void close();

    /** Frees the connection's place among those of its peer, when its session has ended. */
    void release();
}
