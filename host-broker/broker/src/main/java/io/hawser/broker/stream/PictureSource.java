package io.hawser.broker.stream;

/** Takes pictures of the broker. One thread calls it, each second. */
public interface PictureSource {
    /** The present state. */
    Picture take();
}
