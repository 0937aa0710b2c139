package io.hawser.broker.door;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.machine.LogLimiter;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.epoll.EpollChannelOption;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.handler.ssl.SslHandler;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * Accepts guests of other machines over TLS. Its own threads encrypt, since the broker's event loop has no time for it.
 * The door relays each connection to the inner door, whose other end is handed to a worker. A worker therefore never
 * has the key. A relay holds at most a few hundred KiB in each direction: it stops reading while the receiver does not
 * read.
 */
final class TlsDoor implements AutoCloseable {
    /** Bytes that the broker holds for a slow reader: at the upper bound, reading at the other end stops. */
    static final WriteBufferWaterMark WATER_MARK = new WriteBufferWaterMark(64 * 1024, 256 * 1024);

    private static final Logger LOG = Logger.getLogger(TlsDoor.class);
    private static final int PIECE_BYTES = 64 * 1024;
    private static final int BACKLOG = 256;
    private static final int MAX_THREADS = 4;
    private static final int LOG_LINES_A_SECOND = 20;
    /** Detects within half a minute that a guest's machine has vanished. */
    private static final int KEEPALIVE_IDLE_S = 10;
    private static final int KEEPALIVE_INTERVAL_S = 5;
    private static final int KEEPALIVE_PROBES = 4;
    private static final int VANISHED_MS = 30_000;

    private final BrokerConfig.Listen listen;
    private final ServerCertificate certificate;
    private final EpollEventLoopGroup group;
    private final Shared shared;
    private Channel server;

    /** The state that all connections share. */
    static final class Shared {
        private final Arrivals arrivals;
        private final InetSocketAddress inner;
        private final ConnectionLimits limits;
        private final DoorListener listener;
        private final LogLimiter logLimiter = new LogLimiter(LOG_LINES_A_SECOND, System::nanoTime);

        private Shared(Arrivals arrivals, InetSocketAddress inner, ConnectionLimits limits, DoorListener listener) {
            this.arrivals = arrivals;
            this.inner = inner;
            this.limits = limits;
            this.listener = listener;
        }

        Arrivals arrivals() {
            return arrivals;
        }

        InetSocketAddress inner() {
            return inner;
        }

        ConnectionLimits limits() {
            return limits;
        }

        synchronized void refused(Carrier carrier, Refusal refusal, InetSocketAddress guest, String reason) {
            if (logLimiter.allows()) {
                long dropped = logLimiter.takeDropped();
                LOG.warnf("connection refused: peer=%s:%d reason=%s: %s%s", guest.getAddress().getHostAddress(),
                    guest.getPort(), refusal.label(), reason, dropped == 0 ? ""
                        : " (and " + dropped + " more not logged)");
            }
            listener.refused(carrier, refusal); // only counts: the line above is the log
        }
    }

    /**
     * Reads the certificate.
     *
     * @param inner the address of the broker's inner door.
     * @param listener receives rejected guests; any thread.
     */
    TlsDoor(BrokerConfig config, Arrivals arrivals, InetSocketAddress inner, DoorListener listener)
        throws IOException {
        listen = config.listen();
        certificate = new ServerCertificate(config.tls());
        int threads = Math.clamp(Runtime.getRuntime().availableProcessors() / 2, 1, MAX_THREADS);
        group = new EpollEventLoopGroup(threads, new DefaultThreadFactory("hawser-tls", true));
        shared = new Shared(arrivals, inner, new ConnectionLimits(listen.maxHalfOpen(), listen.maxPerPeer()),
            listener);
    }

    static RecvByteBufAllocator pieces() {
        return new FixedRecvByteBufAllocator(PIECE_BYTES);
    }

    /**
     * Listens. Not on an event loop.
     *
     * @throws IOException when the address cannot be bound; the message names it.
     */
    void open() throws IOException {
        String host = listen.tlsHost().orElse(listen.host());
        int port = listen.tlsPort().orElseThrow();
        ServerBootstrap bootstrap = new ServerBootstrap().group(group).channel(EpollServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, BACKLOG).option(ChannelOption.SO_REUSEADDR, true)
            .childOption(ChannelOption.TCP_NODELAY, true).childOption(ChannelOption.SO_KEEPALIVE, true)
            .childOption(EpollChannelOption.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
            .childOption(EpollChannelOption.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
            .childOption(EpollChannelOption.TCP_KEEPCNT, KEEPALIVE_PROBES)
            .childOption(EpollChannelOption.TCP_USER_TIMEOUT, VANISHED_MS)
            .childOption(ChannelOption.ALLOW_HALF_CLOSURE, true)
            .childOption(ChannelOption.RCVBUF_ALLOCATOR, pieces())
            .childOption(ChannelOption.WRITE_BUFFER_WATER_MARK, WATER_MARK)
            .childHandler(new ChannelInitializer<EpollSocketChannel>() {
                @Override
                protected void initChannel(EpollSocketChannel channel) {
                    SslHandler tls = certificate.context().newHandler(channel.alloc());
                    tls.setHandshakeTimeoutMillis(listen.handshakeTimeout().toMillis());
                    TlsAlerts alerts = new TlsAlerts();
                    channel.pipeline().addLast(alerts, tls, new TlsGuest(shared, alerts));
                }
            });
        var bound = bootstrap.bind(new InetSocketAddress(host, port)).awaitUninterruptibly();
        if (!bound.isSuccess()) {
            throw new IOException("the broker cannot listen on the guests' TLS address: host=" + host
                + " hawser.listen.tls-port=" + port + ": " + bound.cause().getMessage(), bound.cause());
        }
        server = bound.channel();
    }

    /** The bound address, with its actual port. */
    InetSocketAddress address() {
        return (InetSocketAddress) server.localAddress();
    }

    /** Connections that have not completed the TLS handshake. */
    int halfOpen() {
        return shared.limits().halfOpen();
    }

    /** Number of addresses that have connections. */
    int peers() {
        return shared.limits().peers();
    }

    /** Stops listening and closes its connections. Not on an event loop. */
    @Override
    public void close() {
        if (server != null) {
            server.close().awaitUninterruptibly();
        }
        certificate.close();
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly(2, TimeUnit.SECONDS);
    }
}
