package io.hawser.broker.web;

import io.netty.channel.Channel;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * Closes a connection whose request is not there in time, however the peer spreads its bytes. The handshake of TLS
 * counts to the first request. Event loop of its connection only.
 */
final class RequestClock {
    private static final Logger LOG = Logger.getLogger(RequestClock.class);

    private final WebDoor door;
    private final InetSocketAddress peer;
    private Future<?> running;
    private boolean bytes;

    RequestClock(WebDoor door, InetSocketAddress peer) {
        this.door = door;
        this.peer = peer;
    }

    /** Starts the time of a request; does nothing while one runs. */
    void start(Channel channel) {
        if (running == null && channel.isOpen()) {
            running = channel.eventLoop().schedule(() -> expire(channel), door.requestLimits().timeout().toMillis(),
                TimeUnit.MILLISECONDS);
        }
    }

    /** Notes that the peer has sent something. */
    void bytesCame() {
        bytes = true;
    }

    /** Stops the time: the request is there, or the connection is closed. */
    void stop() {
        if (running != null) {
            running.cancel(false);
            running = null;
        }
    }

    private void expire(Channel channel) {
        running = null;
        if (!channel.config().isAutoRead()) {
            // The broker has stopped reading, so the delay is not the peer's.
            start(channel);
            return;
        }
        if (bytes) {
            door.refused(WebRefusal.TIMEOUT, peer, "a request must be there in time: timeoutMs="
                + door.requestLimits().timeout().toMillis());
        } else {
            // Browsers connect ahead of their requests.
            LOG.debugf("connection closed that sent nothing: peer=%s", peer);
        }
        channel.close();
    }
}
