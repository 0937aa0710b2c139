package io.hawser.broker.door;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.machine.LogLimiter;
import io.hawser.broker.move.Receptions;
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

/** Accepts the guests' connections. One event loop serves all of them, so the door needs no locks. */
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
     * Creates a door; {@link #open} opens it.
     *
     * @param descriptionHash hash of the workers' API description.
     * @param elsewhere finds the broker of a vGPU that this one does not hold.
     * @param receptions of sessions that come from other brokers.
     */
    public FrontDoor(EventLoop loop, BrokerConfig config, TokenTable tokens, SessionRegistry sessions,
        WorkerPools pools, StatusSource status, DoorListener listener, long descriptionHash, Elsewhere elsewhere,
        Receptions receptions) {
        this.loop = loop;
        this.config = config;
        BrokerConfig.Listen listen = config.listen();
        context = new DoorContext(tokens, sessions, pools, status,
            new ConnectionLimits(listen.maxHalfOpen(), listen.maxPerPeer()),
            new LogLimiter(LOG_LINES_A_SECOND, System::nanoTime), listener, descriptionHash, listen.handshakeTimeout(),
            config.rdma().enabled(), config.tokens().oldProofs(), elsewhere, receptions);
    }

    /**
     * Listens without TLS, and with TLS where the settings name a port for it. Not on the event loop.
     *
     * @throws IOException when an address cannot be bound or the certificate is unusable; the message names it.
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
                    // A local process has found the port, or the relay has ended.
                    channel.close();
                } else {
                    handshake(channel, guest);
                }
            });
            tls = new TlsDoor(config, arrivals, (InetSocketAddress) inner.localAddress(), context.listener());
            tls.open();
        }
        if (!listen.plain() && tls == null) {
            throw new IOException("guests need an address: hawser.listen.plain=false without hawser.listen.tls-port");
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
            throw new IOException("the broker cannot listen on the guests' address: " + settings + ": "
                + bound.cause().getMessage(), bound.cause());
        }
        return bound.channel();
    }

    /** The guests' address, {@code host:port} with the actual port; empty when the door accepts only TLS. */
    public String endpoint() {
        return server == null ? "" : text((InetSocketAddress) server.localAddress());
    }

    /** The guests' address for TLS, {@code host:port} with the actual port; empty without TLS. */
    public String tlsEndpoint() {
        return tls == null ? "" : text(tls.address());
    }

    private static String text(InetSocketAddress address) {
        String host = address.getAddress().getHostAddress();
        return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + address.getPort();
    }

    /** Stops listening; sessions continue. */
    public void close() {
        if (server != null) {
            server.close().awaitUninterruptibly();
        }
        if (inner != null) {
            inner.close().awaitUninterruptibly();
        }
    }

    /** Closes the relays of TLS guests, after their sessions. Not on an event loop. */
    public void closeRelays() {
        if (tls != null) {
            tls.close();
        }
    }

    /** Connections whose guests have not proved their tokens. Waits for the event loop. */
    public int halfOpen() {
        return loop.submit(() -> context.limits().halfOpen() + (tls == null ? 0 : tls.halfOpen())).syncUninterruptibly()
            .getNow();
    }

    /** Addresses that have connections or sessions; a relayed guest counts once at each door. */
    public int peers() {
        return context.limits().peers() + (tls == null ? 0 : tls.peers());
    }
}
