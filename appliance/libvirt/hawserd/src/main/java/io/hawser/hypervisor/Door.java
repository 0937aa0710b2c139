package io.hawser.hypervisor;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.netty.channel.unix.DomainSocketAddress;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpMessage;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.TooLongHttpContentException;
import io.netty.handler.timeout.ReadTimeoutHandler;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;

/** The Unix socket by which hooks and hawserctl come: HTTP, one request a connection. */
final class Door implements AutoCloseable {
    /** That are heard at a time: each holds up to a domain's XML in memory, and a thread or two. */
    static final int MAX_CONNECTIONS = 64;
    /** That wait to be heard, with nothing in memory: each has a descriptor, of which a process has a thousand. */
    static final int MAX_WAITING = 512;
    private static final int MAX_LINE_BYTES = 8 << 10;
    private static final int MAX_HEADER_BYTES = 16 << 10;
    private static final int MAX_BODY_BYTES = DomainXml.MAX_BYTES + 1; // one more, so that it is DomainXml that refuses
    private static final int REQUEST_LIMIT_S = 10; // a request is sent at once, by a program

    private final Path path;
    private final MultiThreadIoEventLoopGroup loop;
    private final Channel channel;

    private Door(Path path, MultiThreadIoEventLoopGroup loop, Channel channel) {
        this.path = path;
        this.loop = loop;
        this.channel = channel;
    }

    /**
     * Listens.
     *
     * @param group id of the group whose members may open the socket beside its owner; -1 leaves it as it is.
     * @param threads answer requests, which may block.
     * @throws IOException a sentence when it cannot: another hawserd listens there, or the folder is missing.
     */
    static Door open(Path path, int group, Api api, ExecutorService threads) throws IOException {
        clear(path);
        MultiThreadIoEventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, runnable -> {
            Thread thread = new Thread(runnable, "door");
            thread.setDaemon(true);
            return thread;
        }, EpollIoHandler.newFactory());
        Places places = new Places(MAX_CONNECTIONS, MAX_WAITING, api.hookLimit(), guest -> {
            guest.pipeline().addFirst(RequestHandler.LIMIT, new ReadTimeoutHandler(REQUEST_LIMIT_S));
            guest.config().setAutoRead(true);
        });
        ServerBootstrap bootstrap = new ServerBootstrap().group(loop).channel(EpollServerDomainSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, MAX_WAITING)
            .childOption(ChannelOption.AUTO_READ, false)
            .childHandler(new ChannelInitializer<Channel>() {
                @Override
                protected void initChannel(Channel guest) {
                    guest.pipeline()
                        .addLast(new HttpServerCodec(new HttpDecoderConfig().setMaxInitialLineLength(MAX_LINE_BYTES)
                            .setMaxHeaderSize(MAX_HEADER_BYTES)))
                        .addLast(new Aggregator())
                        .addLast(new RequestHandler(api, threads));
                    // After its registration, as a connection that is closed at once is.
                    guest.eventLoop().execute(() -> places.enter(guest));
                }
            });
        try {
            // Made under another name and with its mode, so that nobody comes in before it is right.
            Path next = path.resolveSibling("." + path.getFileName() + ".new");
            Files.deleteIfExists(next);
            Channel channel = bootstrap.bind(new DomainSocketAddress(next.toFile())).syncUninterruptibly().channel();
            Files.setPosixFilePermissions(next, PosixFilePermissions.fromString("rw-rw----"));
            if (group >= 0) {
                Files.setAttribute(next, "unix:gid", group, LinkOption.NOFOLLOW_LINKS);
            }
            Files.move(next, path, java.nio.file.StandardCopyOption.ATOMIC_MOVE);
            return new Door(path, loop, channel);
        } catch (IOException | RuntimeException e) {
            loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
            throw new IOException("the socket cannot be made: " + path + ": " + e.getMessage(), e);
        }
    }

    /** Lets the handler say why, which the plain one does without a word. */
    private static final class Aggregator extends HttpObjectAggregator {
        Aggregator() {
            super(MAX_BODY_BYTES);
        }

        @Override
        protected void handleOversizedMessage(ChannelHandlerContext context, HttpMessage oversized) {
            context.fireExceptionCaught(new TooLongHttpContentException("bytes > " + MAX_BODY_BYTES));
        }
    }

    /** Another daemon's socket is not taken away; one that nobody listens on is. */
    private static void clear(Path path) throws IOException {
        if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
            return;
        }
        try (SocketChannel probe = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            probe.connect(UnixDomainSocketAddress.of(path));
        } catch (IOException e) {
            Files.deleteIfExists(path);
            return;
        }
        throw new IOException("another hawserd listens at " + path);
    }

    @Override
    public void close() {
        channel.close().syncUninterruptibly();
        try {
            Files.deleteIfExists(path);
        } catch (IOException e) {
            Log.warn("", "the socket is left behind: " + e.getMessage());
        }
        loop.shutdownGracefully(0, 2, TimeUnit.SECONDS).syncUninterruptibly();
    }
}
