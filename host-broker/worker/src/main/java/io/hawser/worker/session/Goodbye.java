package io.hawser.worker.session;

import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.socket.DuplexChannel;
import java.util.concurrent.TimeUnit;

/** The orderly end of a connection whose guest must still read why. */
final class Goodbye {
    private static final long LINGER_MS = 1000;

    private Goodbye() { }

    /**
     * Closes the sending half when everything has left, then reads and drops what comes until the guest closes or a
     * second has passed: closing at once, with unread bytes there, would reset the connection and take the reason away.
     */
    static void say(Channel channel) {
        channel.config().setAutoRead(true);
        channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(written -> {
            if (written.isSuccess()) {
                ((DuplexChannel) channel).shutdownOutput();
            } else {
                channel.close();
            }
        });
        channel.eventLoop().schedule(() -> {
            channel.close();
        }, LINGER_MS, TimeUnit.MILLISECONDS);
    }
}
