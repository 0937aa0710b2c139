package io.hawser.broker.stream;

/** Takes pictures of the broker. One thread calls it, each second. */
public interface PictureSource {
    /** The present state of this broker. */
    Picture take();

    /** The present state of the pool, for clients. */
    default Picture takeAll() {
        return take();
    }
}
