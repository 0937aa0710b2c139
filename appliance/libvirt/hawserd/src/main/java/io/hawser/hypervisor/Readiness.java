package io.hawser.hypervisor;

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

/** Tells systemd how far hawserd is, where systemd has started it (sd_notify(3)). */
final class Readiness {
    private static final int LIMIT_S = 5;

    private Readiness() {
    }

    /**
     * Tells it, if anybody wants to know.
     *
     * @param socket of the variable NOTIFY_SOCKET; null for nobody.
     */
    @SuppressWarnings("deprecation") // the option below: Netty 4 has no other
    static void tell(String socket, String state) {
        if (socket == null || socket.isEmpty()) {
            return;
        }
        MultiThreadIoEventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, EpollIoHandler.newFactory());
        try {
            // An @ stands for the NUL that an abstract name begins with.
            String name = socket.startsWith("@") ? "\0" + socket.substring(1) : socket;
            // Not connected: such a channel counts as active by this option alone, and writes nothing before it does.
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
                    Unpooled.copiedBuffer(state, StandardCharsets.UTF_8), new DomainSocketAddress(name))) : opened;
            if (!sent.awaitUninterruptibly(LIMIT_S, TimeUnit.SECONDS) || !sent.isSuccess()) {
                Log.warn("", "systemd could not be told " + state + ": " + sent.cause());
            }
            opened.channel().close();
        } finally {
            loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        }
    }
}
