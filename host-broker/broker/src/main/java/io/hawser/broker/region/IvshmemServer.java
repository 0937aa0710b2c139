package io.hawser.broker.region;

import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.os.FileStatus;
import io.hawser.shm.os.SocketFile;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.EventLoop;
import io.netty.channel.epoll.EpollDomainSocketChannel;
import io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.netty.channel.unix.DomainSocketAddress;
import io.netty.util.ReferenceCountUtil;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * The server of an ivshmem device (QEMU, docs/specs/ivshmem-spec.txt, protocol version 0). It gives a virtual machine
 * the region's memory and the event descriptors of its doorbells. The end of the connection shows that the machine has
 * stopped. It serves one machine at a time, because two would share all memory. Event loop only.
 *
 * <p>A message is an i64, some with a descriptor: the version, the client's id, -1 with the memory, then for each
 * vector the broker's id with its event descriptor. The client gets no doorbell of its own, because the broker never
 * rings a guest.
 */
final class IvshmemServer implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(IvshmemServer.class);
    private static final long VERSION = 0;
    private static final long BROKER_ID = 0;
    private static final long CLIENT_ID = 1;
    private static final long MEMORY = -1;
    private static final int GRACE_MS = 500;

    /** The region that the server belongs to. */
    interface Owner {
        /** The memory's descriptor for a new machine; -1 while the broker clears the memory of the last machine. */
        int memory();

        /** A machine has connected or disconnected. */
        void connected(boolean connected);
    }

    private final String region;
    private final RegionContext context;
    private final EventLoop loop;
    private final Owner owner;
    private final EventFd[] doorbells;
    private Path path;
    private SocketFile file;
    private EpollServerDomainSocketChannel server;
    private Channel client;
    private Channel waiting;

    private IvshmemServer(RegionSettings settings, RegionContext context, Owner owner) {
        region = settings.name();
        this.context = context;
        loop = context.loop();
        this.owner = owner;
        doorbells = new EventFd[settings.vectors()];
    }

    /**
     * Starts to listen.
     *
     * @throws IOException when it cannot listen; it has released everything.
     * @throws RegionException when the settings may not name the socket's path.
     */
    static IvshmemServer open(RegionSettings settings, RegionContext context, Owner owner)
        throws IOException, RegionException {
        Place place = context.folders().place(settings);
        IvshmemServer opened = new IvshmemServer(settings, context, owner);
        try {
            for (int i = 0; i < opened.doorbells.length; i++) {
                opened.doorbells[i] = EventFd.create();
            }
            opened.listen(place);
            return opened;
        } catch (IOException | RuntimeException e) {
            opened.close();
            throw e;
        }
    }

    private void listen(Place place) throws IOException {
        context.folders().prepare(place);
        path = place.path();
        file = SocketFile.prepare(place.open(), place.name(), new Made());
        server = new EpollServerDomainSocketChannel();
        server.pipeline().addLast(new ServerHandler());
        loop.register(server);
        // On their own event loop, registration and bind finish before they return.
        ChannelFuture bound = server.bind(new DomainSocketAddress(file.bindPath().toFile()));
        if (!bound.isSuccess()) {
            throw new IOException(bound.cause());
        }
        file.publish(PosixFilePermissions.fromString("rw-------"), -1);
    }

    /** The event descriptor of a vector; null where the server has no such vector. */
    EventFd doorbell(int vector) {
        return vector < doorbells.length ? doorbells[vector] : null;
    }

    /** The memory is clear: a waiting machine gets it. */
    void ready() {
        if (waiting != null) {
            Channel next = waiting;
            waiting = null;
            welcome(next);
        }
    }

    private void arrived(Channel channel) {
        if (waiting != null) {
            refuse(channel);
        } else if (client != null) {
            // A restarted machine can connect before its last connection ends.
            waiting = channel;
            loop.schedule(() -> {
                if (waiting == channel && client != null) {
                    refuse(channel);
                }
            }, GRACE_MS, TimeUnit.MILLISECONDS);
        } else if (owner.memory() < 0) {
            waiting = channel;
        } else {
            welcome(channel);
        }
    }

    private void refuse(Channel channel) {
        LOG.warnf("refused a second virtual machine, the region has one: region=%s", region);
        channel.close();
    }

    private void welcome(Channel channel) {
        int socket = ((EpollDomainSocketChannel) channel).fd().intValue();
        client = channel;
        try {
            Posix.writeAtOnce(socket, message(VERSION));
            Posix.writeAtOnce(socket, message(CLIENT_ID));
            Posix.sendWithDescriptor(socket, message(MEMORY), owner.memory());
            for (EventFd doorbell : doorbells) {
                Posix.sendWithDescriptor(socket, message(BROKER_ID), doorbell.fd());
            }
            LOG.infof("a virtual machine connected: region=%s", region);
            owner.connected(true);
        } catch (PosixException e) {
            LOG.warnf("cannot send the region to a virtual machine: region=%s: %s", region, e.getMessage());
            channel.close();
        }
    }

    private static byte[] message(long value) {
        return ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array();
    }

    private void left(Channel channel) {
        if (channel == waiting) {
            waiting = null;
        } else if (channel == client) {
            client = null;
            LOG.infof("the virtual machine disconnected: region=%s", region);
            owner.connected(false);
        }
    }

    /** Disconnects the machines and stops to listen. */
    @Override
    public void close() {
        if (server != null) {
            server.close();
        }
        if (file != null) {
            try {
                file.close();
                context.sockets().remove(path);
            } catch (IOException e) {
                LOG.warnf("cannot remove a doorbell socket: %s", e.getMessage());
            }
        }
        for (Channel channel : new Channel[] {client, waiting}) {
            if (channel != null) {
                channel.close();
            }
        }
        for (EventFd doorbell : doorbells) {
            if (doorbell != null) {
                doorbell.close();
            }
        }
    }

    /** The broker's record for the socket's path. */
    private final class Made implements SocketFile.Record {
        @Override
        public boolean contains(FileStatus socket) {
            return context.sockets().contains(path, socket);
        }

        @Override
        public void add(FileStatus socket) throws IOException {
            context.sockets().add(path, socket);
        }
    }

    /** Accepts connections. */
    private final class ServerHandler extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object accepted) {
            Channel channel = (Channel) accepted;
            channel.pipeline().addLast(new ClientHandler());
            loop.register(channel);
        }
    }

    /** The connection of one machine. */
    private final class ClientHandler extends ChannelInboundHandlerAdapter {
        @Override
        public void channelActive(ChannelHandlerContext context) {
            arrived(context.channel());
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            ReferenceCountUtil.release(message);
            LOG.warnf("an ivshmem client must not send anything: region=%s", region);
            context.close();
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            left(context.channel());
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
            LOG.debugf("ivshmem connection lost: region=%s: %s", region, failure.getMessage());
            context.close();
        }
    }
}
