package io.hawser.broker.door;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.status.StatusSource;
import io.hawser.broker.token.TokenTable;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import java.io.IOException;
import java.net.InetSocketAddress;

/** Where guests connect. One event loop has all its connections, so that nothing here is locked. */
public final class FrontDoor {
    private static final int BACKLOG = 256;
    private static final int LOG_LINES_A_SECOND = 20;

    private final EventLoop loop;
    private final BrokerConfig.Listen listen;
    private final DoorContext context;
    private Channel server;

    /**
     * Makes a door; {@link #open} opens it.
     *
     * @param descriptionHash of the API that the workers speak.
     */
    public FrontDoor(EventLoop loop, BrokerConfig.Listen listen, TokenTable tokens, SessionRegistry sessions,
        WorkerPools pools, StatusSource status, DoorListener listener, long descriptionHash) {
        this.loop = loop;
        this.listen = listen;
        context = new DoorContext(tokens, sessions, pools, status,
            new ConnectionLimits(listen.maxHalfOpen(), listen.maxPerPeer()),
            new LogLimiter(LOG_LINES_A_SECOND, System::nanoTime), listener, descriptionHash, listen.handshakeTimeout());
    }

    /**
     * Listens. Not on the event loop.
     *
     * @throws IOException when the address cannot be taken; the message names it.
     */
    public void open() throws IOException {
        ServerBootstrap bootstrap = new ServerBootstrap().group(loop, loop).channel(EpollServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, BACKLOG).option(ChannelOption.SO_REUSEADDR, true)
            .childOption(ChannelOption.TCP_NODELAY, true).childHandler(new ChannelInitializer<EpollSocketChannel>() {
                @Override
                protected void initChannel(EpollSocketChannel channel) {
                    HandshakeDecoder decoder = new HandshakeDecoder();
                    channel.pipeline().addLast(decoder, new HandshakeHandler(context, decoder));
                }
            });
        var bound = bootstrap.bind(new InetSocketAddress(listen.host(), listen.port())).awaitUninterruptibly();
        if (!bound.isSuccess()) {
            throw new IOException("the guests' address cannot be listened on: hawser.listen.host=" + listen.host()
                + " hawser.listen.port=" + listen.port() + ": " + bound.cause().getMessage(), bound.cause());
        }
        server = bound.channel();
    }

    /** The address that it listens on, with the port that it got. */
    public InetSocketAddress address() {
        return (InetSocketAddress) server.localAddress();
    }

    /** Listens no more; sessions are not touched. */
    public void close() {
        if (server != null) {
            server.close().awaitUninterruptibly();
        }
    }

    /** Connections that have not proved who they are. Event loop only. */
    public int halfOpen() {
        return context.limits().halfOpen();
    }
}
