package io.hawser.broker.web;

import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.List;

/** A listening socket that requests a place at the door for each connection, before Vert.x sees the connection. */
final class DoorServerChannel extends NioServerSocketChannel {
    private final WebDoor door;

    DoorServerChannel(WebDoor door) {
        this.door = door;
    }

    @Override
    protected int doReadMessages(List<Object> accepted) throws IOException {
        SocketChannel socket = javaChannel().accept();
        if (socket == null) {
            return 0;
        }
        boolean passed = false;
        try {
            InetSocketAddress peer = (InetSocketAddress) socket.getRemoteAddress();
            Places.Place place = door.enter(peer, (InetSocketAddress) socket.getLocalAddress());
            if (place != null) {
                DoorSocketChannel channel = new DoorSocketChannel(this, socket, place);
                channel.pipeline().addFirst(new ArrivalHandler(door, peer));
                accepted.add(channel);
                passed = true;
            }
        } finally {
            if (!passed) {
                socket.close();
            }
        }
        return 1;
    }

    /** A connection that releases its place on the close of its descriptor, whatever the cause. */
    private static final class DoorSocketChannel extends NioSocketChannel {
        private final Places.Place place;

        DoorSocketChannel(DoorServerChannel parent, SocketChannel socket, Places.Place place) {
            super(parent, socket);
            this.place = place;
        }

        @Override
        protected void doClose() throws Exception {
            try {
                super.doClose();
            } finally {
                place.release();
            }
        }
    }
}
