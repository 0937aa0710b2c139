package io.hawser.broker.stream;

/** Takes pictures of the broker; called by one thread, each second. */
public interface PictureSource {
    /** A picture of now. */
    Picture take();
}
