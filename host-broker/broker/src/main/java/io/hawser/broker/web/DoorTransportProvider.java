package io.hawser.broker.web;

import io.vertx.core.impl.VertxBuilder;
import io.vertx.core.spi.VertxServiceProvider;

/** Gives Vert.x the transport with the door. Vert.x finds the class by {@code META-INF/services}. */
public final class DoorTransportProvider implements VertxServiceProvider {
    @Override
    public void init(VertxBuilder builder) {
        builder.findTransport(new DoorTransport());
    }
}
