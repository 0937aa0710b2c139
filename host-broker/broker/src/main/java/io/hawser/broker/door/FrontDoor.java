package io.hawser.broker.door;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.machine.LogLimiter;
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
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.function.Consumer;

/** Where guests connect. One event loop has all its connections, so that nothing here is locked. */
public final class FrontDoor {
    private static final int BACKLOG = 256;
    private static final int LOG_LINES_A_SECOND = 20;

    private final EventLoop loop;
    private final BrokerConfig config;
    private final DoorContext context;
    private Channel server;
    private Channel inner;
    private TlsDoor tls;

    /**
     * Makes a door; {@link #open} opens it.
     *
     * @param descriptionHash of the API that the workers speak.
     */
    public FrontDoor(EventLoop loop, BrokerConfig config, TokenTable tokens, SessionRegistry sessions,
        WorkerPools pools, StatusSource status, DoorListener listener, long descriptionHash) {
        this.loop = loop;
        this.config = config;
        BrokerConfig.Listen listen = config.listen();
        context = new DoorContext(tokens, sessions, pools, status,
            new ConnectionLimits(listen.maxHalfOpen(), listen.maxPerPeer()),
            new LogLimiter(LOG_LINES_A_SECOND, System::nanoTime), listener, descriptionHash, listen.handshakeTimeout(),
            config.tokens().oldProofs());
    }

    /**
     * Listens: by itself, and through TLS where settings name a port for it. Not on the event loop.
     *
     * @throws IOException when an address cannot be taken, or the certificate cannot be used; the message names it.
     */
    public void open() throws IOException {
        BrokerConfig.Listen listen = config.listen();
        if (listen.plain()) {
            server = bind(new InetSocketAddress(listen.host(), listen.port()), "hawser.listen.host=" + listen.host()
                + " hawser.listen.port=" + listen.port(), channel -> handshake(channel, null));
        }
        if (listen.tlsPort().isPresent()) {
            if (config.tls().certificate().isEmpty()) {
                throw new IOException("hawser.listen.tls-port needs hawser.tls.certificate and hawser.tls.key");
            }
            Arrivals arrivals = new Arrivals();
            inner = bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "inner", channel -> {
                InetSocketAddress relay = channel.remoteAddress();
                InetSocketAddress guest = relay == null ? null : arrivals.take(relay);
                if (guest == null) {
                    // A process of this machine that has found the port, or a relay that is gone.
                    channel.close();
                } else {
                    handshake(channel, guest);
                }
            });
            tls = new TlsDoor(config, arrivals, (InetSocketAddress) inner.localAddress(), context.listener());
            tls.open();
        }
        if (!listen.plain() && tls == null) {
            throw new IOException("guests must have a door: hawser.listen.plain=false without hawser.listen.tls-port");
        }
    }

    private void handshake(EpollSocketChannel channel, InetSocketAddress behind) {
        HandshakeDecoder decoder = new HandshakeDecoder();
        channel.pipeline().addLast(decoder, new HandshakeHandler(context, decoder, behind));
    }

    private Channel bind(InetSocketAddress address, String settings, Consumer<EpollSocketChannel> arrived)
        throws IOException {
        ServerBootstrap bootstrap = new ServerBootstrap().group(loop, loop).channel(EpollServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, BACKLOG).option(ChannelOption.SO_REUSEADDR, true)
            .childOption(ChannelOption.TCP_NODELAY, true).childHandler(new ChannelInitializer<EpollSocketChannel>() {
                @Override
                protected void initChannel(EpollSocketChannel channel) {
                    arrived.accept(channel);
                }
            });
        var bound = bootstrap.bind(address).awaitUninterruptibly();
        if (!bound.isSuccess()) {
            throw new IOException("the guests' address cannot be listened on: " + settings + ": "
                + bound.cause().getMessage(), bound.cause());
        }
        return bound.channel();
    }

    /** The address that it listens on, with the port that it got; null when only TLS is spoken. */
    public InetSocketAddress address() {
        return server == null ? null : (InetSocketAddress) server.localAddress();
    }

    /** The address of guests that come by TLS; null when there is none. */
    public InetSocketAddress tlsAddress() {
        return tls == null ? null : tls.address();
    }

    /** Listens no more; sessions are not touched. */
    public void close() {
        if (server != null) {
            server.close().awaitUninterruptibly();
        }
        if (inner != null) {
            inner.close().awaitUninterruptibly();
        }
    }

    /** Ends the relays of guests that came by TLS; after their sessions. Not on an event loop. */
    public void closeRelays() {
        if (tls != null) {
            tls.close();
        }
    }

    /** Connections that have not proved who they are. Event loop only. */
    public int halfOpen() {
        return context.limits().halfOpen() + (tls == null ? 0 : tls.halfOpen());
    }

    /** Addresses that have connections or sessions at the doors, a relay counting at each. */
    public int peers() {
        return context.limits().peers() + (tls == null ? 0 : tls.peers());
    }
}
