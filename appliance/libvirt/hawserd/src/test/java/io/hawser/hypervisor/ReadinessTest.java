package io.hawser.hypervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollDomainDatagramChannel;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.unix.DomainDatagramPacket;
import io.netty.channel.unix.DomainSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The messages to systemd. */
class ReadinessTest {
    private static String sent(String bound, String named) throws InterruptedException {
        BlockingQueue<String> received = new LinkedBlockingQueue<>();
        MultiThreadIoEventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, EpollIoHandler.newFactory());
        try {
            Channel systemd = new Bootstrap().group(loop).channel(EpollDomainDatagramChannel.class)
                .handler(new SimpleChannelInboundHandler<DomainDatagramPacket>() {
                    @Override
                    protected void channelRead0(ChannelHandlerContext context, DomainDatagramPacket packet) {
                        received.add(packet.content().toString(StandardCharsets.UTF_8));
                    }
                }).bind(new DomainSocketAddress(bound)).sync().channel();
            Readiness.tell(named, "READY=1");
            String first = received.poll(120, TimeUnit.SECONDS);
            systemd.close().sync();
            return first;
        } finally {
            loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        }
    }

    @Test
    void shouldReportReadinessToSystemd(@TempDir Path folder) throws Exception {
        String socket = folder.resolve("notify").toString();
        assertEquals("READY=1", sent(socket, socket));
    }

    @Test
    void shouldKnowAbstractSockets() throws Exception {
        String name = "hawser-readiness-" + ProcessHandle.current().pid();
        assertEquals("READY=1", sent("\0" + name, "@" + name));
    }
}
