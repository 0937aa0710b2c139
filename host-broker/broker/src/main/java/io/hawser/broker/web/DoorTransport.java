package io.hawser.broker.web;

import io.netty.channel.ChannelFactory;
import io.netty.channel.ServerChannel;
import io.vertx.core.impl.transports.JDKTransport;
import jakarta.enterprise.inject.spi.CDI;

/**
 * Vert.x's transport, whose servers accept through the door. The HTTP server is the only server of Vert.x in the
 * broker.
 */
final class DoorTransport extends JDKTransport {
    @Override
    public ChannelFactory<? extends ServerChannel> serverChannelFactory(boolean domainSocket) {
        if (domainSocket) {
            return super.serverChannelFactory(true);
        }
        // Looks the bean up late: Vert.x starts before the beans exist, but opens its servers after them.
        return () -> new DoorServerChannel(CDI.current().select(WebDoor.class).get());
    }
}
