package io.hawser.broker.door;

import io.hawser.broker.move.Held;
import io.netty.channel.epoll.EpollSocketChannel;

/** A connection that has left the event loop and waits for a worker. Event loop only. */
record HeldChannel(EpollSocketChannel channel, Runnable freed) implements Held {
    @Override
    public int descriptor() {
        return channel.fd().intValue();
    }

    @Override
    public void close() {
        channel.close(); // only the broker's descriptor
    }

    @Override
    public void release() {
        freed.run();
    }
}
