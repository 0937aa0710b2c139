package io.hawser.hypervisor.door;

import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.log.Log;
import io.hawser.shm.os.Folder;
import io.hawser.shm.os.SocketFile;
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
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;

/** The Unix socket for hooks and hawserctl: HTTP, one request per connection. */
public final class Door implements AutoCloseable {
    /** Connections that are served at a time. Each holds up to a domain's XML in memory, and one or two threads. */
    public static final int MAX_CONNECTIONS = 64;
    /** Connections that wait unread. Each has a descriptor, of which a process has about a thousand. */
    static final int MAX_WAITING = 512;
    private static final int MAX_LINE_BYTES = 8 << 10;
    private static final int MAX_HEADER_BYTES = 16 << 10;
    private static final int MAX_BODY_BYTES = DomainXml.MAX_BYTES + 1; // so that DomainXml rejects a longer body
    private static final int REQUEST_LIMIT_S = 10; // a program sends its request at once

    private final SocketFile file;
    private final MultiThreadIoEventLoopGroup loop;
    private final Channel channel;

    private Door(SocketFile file, MultiThreadIoEventLoopGroup loop, Channel channel) {
        this.file = file;
        this.loop = loop;
        this.channel = channel;
    }

    /**
     * Listens.
     *
     * @param group id of the group whose members may open the socket in addition to its owner; -1 leaves it as it
     *     is.
     * @param threads run the requests, which may block.
     * @throws IOException a sentence: another hawserd listens there, the path is not a socket of an earlier
     *     hawserd, or the folder is missing.
     */
    public static Door open(Path path, int group, Api api, ExecutorService threads) throws IOException {
        SocketFile file = prepare(path);
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
                    // After its registration, because Places may close the connection at once.
                    guest.eventLoop().execute(() -> places.enter(guest));
                }
            });
        try {
            Channel channel = bootstrap.bind(new DomainSocketAddress(file.bindPath().toFile())).syncUninterruptibly()
                .channel();
            file.publish(PosixFilePermissions.fromString("rw-rw----"), group);
            return new Door(file, loop, channel);
        } catch (IOException | RuntimeException e) {
            loop.shutdownGracefully(0, 1, TimeUnit.SECONDS).syncUninterruptibly();
            file.close();
            throw problem(path, e);
        }
    }

    private static SocketFile prepare(Path path) throws IOException {
        try {
            return SocketFile.prepare(Folder.open(path.toAbsolutePath().getParent()), path.getFileName().toString(),
                SocketFile.Record.NONE);
        } catch (IOException e) {
            throw problem(path, e);
        }
    }

    private static IOException problem(Path path, Exception cause) {
        return new IOException("the socket cannot be made: " + path + ": " + cause.getMessage(), cause);
    }

    /**
     * Reports a request that is too long to RequestHandler, which answers with a reason. Netty's own aggregator closes
     * silently.
     */
    private static final class Aggregator extends HttpObjectAggregator {
        Aggregator() {
            super(MAX_BODY_BYTES);
        }

        @Override
        protected void handleOversizedMessage(ChannelHandlerContext context, HttpMessage oversized) {
            context.fireExceptionCaught(new TooLongHttpContentException("bytes > " + MAX_BODY_BYTES));
        }
    }

    @Override
    public void close() {
        channel.close().syncUninterruptibly();
        try {
            file.close();
        } catch (IOException e) {
            Log.warn("", "the socket could not be removed: " + e.getMessage());
        }
        loop.shutdownGracefully(0, 2, TimeUnit.SECONDS).syncUninterruptibly();
    }
}
