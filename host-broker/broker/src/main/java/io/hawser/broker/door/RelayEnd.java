package io.hawser.broker.door;

import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.socket.ChannelInputShutdownEvent;
import io.netty.channel.socket.DuplexChannel;
import io.netty.handler.ssl.SslCloseCompletionEvent;
import io.netty.handler.ssl.SslHandler;
import io.netty.util.ReferenceCountUtil;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * One end of a relay between a guest's TLS connection and its worker's. It writes its input to the other end. Reading
 * stops while the other end's output is full. When the input of one end closes, the other end closes its output after
 * the last bytes. When both inputs are closed, both connections are closed. Both ends run on one event loop.
 */
final class RelayEnd extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = Logger.getLogger(RelayEnd.class);
    /** Time for a guest to close after its worker has; stops a guest from keeping its place. */
    private static final int LINGER_MS = 5000;

    private final DuplexChannel channel;
    private RelayEnd other;
    private boolean inputEnded;

    private RelayEnd(DuplexChannel channel) {
        this.channel = channel;
    }

    /** Connects a guest's connection with its worker's. On the event loop of both. */
    static void join(DuplexChannel guest, DuplexChannel worker) {
        RelayEnd here = new RelayEnd(guest);
        RelayEnd there = new RelayEnd(worker);
        here.other = there;
        there.other = here;
        guest.pipeline().addLast(here);
        worker.pipeline().addLast(there);
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (other.channel.isActive()) {
            other.channel.write(message, other.channel.voidPromise());
        } else {
            ReferenceCountUtil.release(message);
        }
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        other.channel.flush();
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        other.channel.config().setAutoRead(channel.isWritable());
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (!inputEnded && (event instanceof ChannelInputShutdownEvent || event instanceof SslCloseCompletionEvent)) {
            inputEnded = true;
            if (other.inputEnded) {
                closeBoth();
            } else {
                other.endOutput();
            }
        }
    }

    /** Closes this end's output after its last bytes; the other direction continues. */
    private void endOutput() {
        SslHandler tls = channel.pipeline().get(SslHandler.class);
        channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(flushed -> {
            if (tls == null) {
                channel.shutdownOutput();
            } else {
                tls.closeOutbound().addListener(sent -> channel.shutdownOutput());
                channel.eventLoop().schedule(this::closeBoth, LINGER_MS, TimeUnit.MILLISECONDS);
            }
        });
    }

    private void closeBoth() {
        channel.close();
        other.channel.close();
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        // The flush puts the last bytes into the other socket before it closes.
        other.channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(flushed -> other.channel.close());
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
        LOG.debugf("a relay's connection failed: peer=%s: %s", channel.remoteAddress(), failure.getMessage());
        channel.close();
    }
}
