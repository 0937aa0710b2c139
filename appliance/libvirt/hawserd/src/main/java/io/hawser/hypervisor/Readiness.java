package io.hawser.hypervisor;

import io.hawser.hypervisor.log.Log;
import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollDomainDatagramChannel;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.unix.DomainDatagramPacket;
import io.netty.channel.unix.DomainSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;

/** Reports hawserd's state to systemd (sd_notify(3)), if systemd has started it. */
final class Readiness {
    private static final int LIMIT_S = 5;

    private Readiness() {
    }

    /**
     * Sends a state, such as {@code READY=1}.
     *
     * @param socket value of the variable NOTIFY_SOCKET; null if systemd has not started hawserd.
     */
    @SuppressWarnings("deprecation") // Netty 4 has no replacement for the option below
    static void tell(String socket, String state) {
        if (socket == null || socket.isEmpty()) {
            return;
        }
        MultiThreadIoEventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, EpollIoHandler.newFactory());
        try {
            // A leading @ represents the NUL byte of an abstract name.
            String name = socket.startsWith("@") ? "\0" + socket.substring(1) : socket;
            // The channel is not connected. Only this option makes Netty treat it as active and write to it.
            ChannelFuture opened = new Bootstrap().group(loop).channel(EpollDomainDatagramChannel.class)
                .option(ChannelOption.DATAGRAM_CHANNEL_ACTIVE_ON_REGISTRATION, true)
                .handler(new SimpleChannelInboundHandler<DomainDatagramPacket>() {
                    @Override
                    protected void channelRead0(ChannelHandlerContext context, DomainDatagramPacket packet) {
                        // systemd answers nothing
                    }
                }).register();
            ChannelFuture sent = opened.awaitUninterruptibly(LIMIT_S, TimeUnit.SECONDS) && opened.isSuccess()
                ? opened.channel().writeAndFlush(new DomainDatagramPacket(
                    Unpooled.copiedBuffer(state, StandardCharsets.UTF_8), new DomainSocketAddress(name)))
                : opened;
            if (!sent.awaitUninterruptibly(LIMIT_S, TimeUnit.SECONDS) || !sent.isSuccess()) {
                Log.warn("", "cannot report " + state + " to systemd: " + sent.cause());
            }
            opened.channel().close();
        } finally {
            loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        }
    }
}
