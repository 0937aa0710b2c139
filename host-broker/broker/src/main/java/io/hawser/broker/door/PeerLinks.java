package io.hawser.broker.door;

import io.hawser.broker.model.VgpuException;
import io.hawser.broker.move.Held;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.hawser.shm.wire.RecordLayout;
import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.epoll.EpollDomainSocketChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.handler.codec.ByteToMessageDecoder;
import io.netty.handler.ssl.OpenSsl;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslProvider;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;

/**
 * Connections to other brokers of the pool, by which sessions leave. They go to the port of the guests, over TLS where
 * the other broker has it. Thread-safe.
 */
public final class PeerLinks {
    private static final long LIMIT_MS = 5000; // for each connection

    private final EventLoop loop;
    private final Optional<Path> authorities;

    /**
     * Makes no connection yet.
     *
     * @param authorities PEM file of those who sign the certificates of the other brokers; empty for the machine's.
     */
    public PeerLinks(EventLoop loop, Optional<Path> authorities) {
        this.loop = loop;
        this.authorities = authorities;
    }

    /**
     * Where another broker takes sessions.
     *
     * @param address {@code host:port} or {@code [v6]:port}.
     */
    public record Place(String address, boolean tls) {
        private String host() {
            String host = address.substring(0, address.lastIndexOf(':'));
            return host.startsWith("[") ? host.substring(1, host.length() - 1) : host;
        }

        private int port() {
            return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
        }
    }

    /**
     * Connects, and announces a session.
     *
     * @return completes on the event loop with a connection whose further bytes go to the other broker's worker;
     *     exceptionally with {@link VgpuException}.
     */
    public CompletableFuture<Held> open(Place place, byte[] ticket, long sessionId) {
        CompletableFuture<Held> result = new CompletableFuture<>();
        Thread.ofVirtual().name("hawser-peer").start(() -> {
            try {
                SslContext tls = place.tls ? context() : null;
                InetSocketAddress address = new InetSocketAddress(place.host(), place.port()); // may ask a name server
                if (address.isUnresolved()) {
                    throw new IOException("the name is unknown");
                }
                connect(place, address, tls, HandshakeRecords.deliver(ticket, sessionId), result);
            } catch (IOException | RuntimeException e) {
                result.completeExceptionally(failure(place, e));
            }
        });
        return result.orTimeout(LIMIT_MS, TimeUnit.MILLISECONDS).exceptionallyComposeAsync(
            e -> CompletableFuture.failedFuture(e instanceof VgpuException ? e : failure(place, e)), loop);
    }

    private SslContext context() throws SSLException {
        SslContextBuilder builder = SslContextBuilder.forClient()
            .sslProvider(OpenSsl.isAvailable() ? SslProvider.OPENSSL : SslProvider.JDK);
        authorities.ifPresent(file -> builder.trustManager(file.toFile()));
        return builder.build();
    }

    private static VgpuException failure(Place place, Throwable cause) {
        return new VgpuException(VgpuException.Kind.UNAVAILABLE, "the other broker cannot be reached: address="
            + place.address + " tls=" + place.tls + ": " + (cause.getMessage() == null
                ? cause.getClass().getSimpleName() : cause.getMessage()));
    }

    private void connect(Place place, InetSocketAddress address, SslContext tls, byte[] record,
        CompletableFuture<Held> result) {
        new Bootstrap().group(loop).channel(EpollSocketChannel.class).option(ChannelOption.TCP_NODELAY, true)
            .option(ChannelOption.ALLOW_HALF_CLOSURE, tls != null)
            .handler(new ChannelInitializer<EpollSocketChannel>() {
                @Override
                protected void initChannel(EpollSocketChannel channel) {
                    if (tls != null) {
                        SslHandler handler = tls.newHandler(channel.alloc(), place.host(), place.port());
                        SSLParameters parameters = handler.engine().getSSLParameters();
                        parameters.setEndpointIdentificationAlgorithm("HTTPS");
                        handler.engine().setSSLParameters(parameters);
                        channel.pipeline().addLast(handler);
                    }
                    channel.pipeline().addLast(new Announcement(place, tls != null, record, result));
                }
            }).connect(address).addListener(connected -> {
                if (!connected.isSuccess()) {
                    result.completeExceptionally(failure(place, connected.cause()));
                }
            });
    }

    /** Sends DELIVER and awaits PARKED. */
    private static final class Announcement extends ByteToMessageDecoder {
        private final Place place;
        private final boolean tls;
        private final byte[] record;
        private final CompletableFuture<Held> result;

        Announcement(Place place, boolean tls, byte[] record, CompletableFuture<Held> result) {
            this.place = place;
            this.tls = tls;
            this.record = record;
            this.result = result;
        }

        @Override
        public void channelActive(ChannelHandlerContext context) {
            context.writeAndFlush(Unpooled.wrappedBuffer(record)); // after the handshake of TLS
        }

        @Override
        protected void decode(ChannelHandlerContext context, ByteBuf in, List<Object> out) {
            if (in.readableBytes() < RecordLayout.HEADER_BYTES) {
                return;
            }
            int opcode = in.getIntLE(in.readerIndex() + RecordLayout.OPCODE_OFFSET);
            in.skipBytes(in.readableBytes());
            if (opcode == RecordLayout.CONTROL_PARKED) {
                give(context, (EpollSocketChannel) context.channel());
            } else {
                fail(context, new IOException("it does not expect the session; its log says why"));
            }
        }

        private void give(ChannelHandlerContext context, EpollSocketChannel channel) {
            if (tls) {
                relay(context, channel);
                return;
            }
            channel.deregister().addListener(detached -> {
                if (!detached.isSuccess() || !result.complete(new HeldChannel(channel, () -> {}))) {
                    channel.close(); // nobody waits any more
                }
            });
        }

        /** The worker gets a socket of this machine, and this broker encrypts. */
        private void relay(ChannelHandlerContext context, EpollSocketChannel channel) {
            int[] pair;
            try {
                pair = Posix.blockingPair();
            } catch (PosixException e) {
                fail(context, e);
                return;
            }
            EpollDomainSocketChannel inner = new EpollDomainSocketChannel(pair[0]);
            inner.config().setAutoRead(false).setAllowHalfClosure(true);
            inner.pipeline().addLast(new ChannelInboundHandlerAdapter());
            channel.eventLoop().register(inner).addListener(registered -> {
                if (!registered.isSuccess() || !result.complete(new Descriptor(pair[1]))) {
                    inner.close();
                    channel.close();
                    return;
                }
                RelayEnd.join(channel, inner);
                inner.config().setAutoRead(true);
                context.pipeline().remove(this);
            });
        }

        private void fail(ChannelHandlerContext context, Throwable cause) {
            result.completeExceptionally(failure(place, cause));
            context.close();
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            fail(context, new IOException("it has closed the connection"));
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            fail(context, cause);
        }
    }

    /** The end of a relay for a worker. */
    private record Descriptor(int descriptor) implements Held {
        @Override
        public void close() {
            Posix.close(descriptor);
        }

        @Override
        public void release() {
            // It counts nowhere.
        }
    }
}
