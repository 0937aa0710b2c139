package io.hawser.broker.web;

import io.netty.channel.Channel;
import io.netty.util.concurrent.Future;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * Closes a connection whose request is incomplete at the timeout, however the peer spreads its bytes. The first
 * request's time includes the TLS handshake. Event loop of its connection only.
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

    /** Starts the timeout of a request; does nothing while one runs. */
    void start(Channel channel) {
        if (running == null && channel.isOpen()) {
            running = channel.eventLoop().schedule(() -> expire(channel), door.requestLimits().timeout().toMillis(),
                TimeUnit.MILLISECONDS);
        }
    }

    /** Notes that the peer has sent something. */
    void noteBytes() {
        bytes = true;
    }

    /** Stops the timeout: the request is complete, or the connection is closed. */
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
            door.recordRefusal(WebRefusal.TIMEOUT, peer, "a request must be complete in time: timeoutMs="
                + door.requestLimits().timeout().toMillis());
        } else {
            // Browsers open connections ahead of their requests.
            LOG.debugf("closed a connection without a request: peer=%s", peer);
        }
        channel.close();
    }
}
