package io.hawser.broker.door;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.PeerName;
import io.hawser.broker.model.Refusal;
import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.handler.ssl.NotSslRecordException;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslHandshakeCompletionEvent;
import io.netty.util.ReferenceCountUtil;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Queue;
import org.jboss.logging.Logger;

/**
 * A connection at the TLS door until its relay exists. It counts the connection, waits for the TLS handshake, and
 * connects to the broker's inner door. There the guest proves its token like any other guest. On an event loop of the
 * TLS door.
 */
final class TlsGuest extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = Logger.getLogger(TlsGuest.class);

    private static final String SPEAKS_TLS = "this port speaks TLS: HAWSER_BROKER=tls://host:port";

    private final TlsDoor.Shared door;
    private final TlsAlerts alerts;
    private final Queue<Object> early = new ArrayDeque<>();
    private ConnectionLimits.Place place;
    private InetSocketAddress guest;
    private boolean over;

    /** Waits for the handshake; {@code alerts} stands before the TLS handler in the pipeline. */
    TlsGuest(TlsDoor.Shared door, TlsAlerts alerts) {
        this.door = door;
        this.alerts = alerts;
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        if (!(context.channel().remoteAddress() instanceof InetSocketAddress remote)) {
            // The peer has left between accept and this call.
            context.close();
            return;
        }
        guest = remote;
        String peer = PeerName.of(remote.getAddress());
        place = door.limits().enter(peer);
        String excess = door.limits().excess(peer);
        if (excess != null) {
            refuse(context, Refusal.CONNECTIONS, excess);
            return;
        }
        context.fireChannelActive();
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event instanceof ChannelInputShutdownEvent && !over) {
            // The guest can no longer prove its token, so its place is freed. The relay does not exist yet.
            LOG.debugf("connection closed by its peer: peer=%s", guest);
            over = true;
            context.close();
            return;
        }
        if (event instanceof SslHandshakeCompletionEvent done && !over) {
            if (done.isSuccess()) {
                place.endHandshake();
                context.pipeline().remove(alerts);
                connect(context);
            } else {
                Throwable cause = done.cause();
                if (cause instanceof NotSslRecordException) {
                    // In clear, past the TLS handler: a guest without TLS can read it.
                    context.pipeline().context(SslHandler.class).writeAndFlush(Unpooled.wrappedBuffer(
                        HandshakeRecords.refused(Refusal.TLS, SPEAKS_TLS)));
                    refuse(context, Refusal.TLS, SPEAKS_TLS);
                } else {
                    refuse(context, Refusal.TLS, alerts.reason(cause));
                }
            }
        }
    }

    private void connect(ChannelHandlerContext context) {
        EpollSocketChannel channel = (EpollSocketChannel) context.channel();
        // Further data waits in the guest's socket.
        channel.config().setAutoRead(false);
        EpollSocketChannel[] made = new EpollSocketChannel[1];
        ChannelFuture bound = new Bootstrap().group(channel.eventLoop()).channelFactory(() -> {
            made[0] = new EpollSocketChannel();
            return made[0];
        }).option(ChannelOption.TCP_NODELAY, true).option(ChannelOption.ALLOW_HALF_CLOSURE, true)
            .option(ChannelOption.AUTO_READ, false).option(ChannelOption.RCVBUF_ALLOCATOR, TlsDoor.pieces())
            .option(ChannelOption.WRITE_BUFFER_WATER_MARK, TlsDoor.WATER_MARK)
            .handler(new ChannelInboundHandlerAdapter()).bind(new InetSocketAddress(InetAddress.getLoopbackAddress(),
                0));
        bound.addListener(done -> {
            if (!done.isSuccess()) {
                fail(context, done.cause());
                return;
            }
            EpollSocketChannel inner = made[0];
            InetSocketAddress relay = inner.localAddress();
            door.arrivals().expect(relay, guest);
            inner.closeFuture().addListener(closed -> door.arrivals().take(relay));
            inner.connect(door.inner()).addListener(connected -> {
                if (!connected.isSuccess()) {
                    inner.close();
                    fail(context, connected.cause());
                } else if (over || !channel.isActive()) {
                    inner.close();
                    context.close();
                } else {
                    relay(context, channel, inner);
                }
            });
        });
    }

    private void relay(ChannelHandlerContext context, EpollSocketChannel channel, EpollSocketChannel inner) {
        RelayEnd.join(channel, inner);
        while (!early.isEmpty()) {
            inner.write(early.remove(), inner.voidPromise());
        }
        inner.flush();
        inner.config().setAutoRead(true);
        channel.config().setAutoRead(true);
        context.pipeline().remove(this);
        ConnectionLimits.Place taken = place;
        channel.closeFuture().addListener(closed -> taken.release());
        place = null;
    }

    private void fail(ChannelHandlerContext context, Throwable cause) {
        LOG.errorf("a relay failed: %s", cause.getMessage());
        refuse(context, Refusal.INTERNAL, "the broker failed; its log says why");
    }

    /** Rejects the guest and closes the connection; the guest receives an alert or the end of the stream. */
    private void refuse(ChannelHandlerContext context, Refusal refusal, String reason) {
        if (over) {
            return;
        }
        over = true;
        place.linger();
        door.refused(Carrier.TCP, refusal, guest, reason);
        context.close();
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (over) {
            ReferenceCountUtil.release(message);
        } else {
            // Holds at most one read of the socket: reading stops at the end of the handshake.
            early.add(message);
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        over = true;
        if (place != null) {
            place.release();
        }
        context.fireChannelInactive();
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        early.forEach(ReferenceCountUtil::release);
        early.clear();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
        // The completion event has already reported a failed handshake.
        LOG.debugf("connection lost: peer=%s: %s", guest, failure.getMessage());
        context.close();
    }
}
