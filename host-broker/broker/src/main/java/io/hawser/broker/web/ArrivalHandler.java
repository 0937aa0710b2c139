package io.hawser.broker.web;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.HttpResponseEncoder;
import io.netty.handler.ssl.SslHandler;
import io.netty.util.ReferenceCountUtil;
import java.net.InetSocketAddress;

/**
 * The first handler of a connection. At the first byte of HTTP it replaces Vert.x's decoder by the door's decoder. With
 * TLS it moves behind the TLS handler, which delivers that byte. Event loop of its connection only.
 */
final class ArrivalHandler extends ChannelInboundHandlerAdapter {
    private final WebDoor door;
    private final InetSocketAddress peer;
    private final RequestClock clock;
    private final boolean inTls;

    ArrivalHandler(WebDoor door, InetSocketAddress peer) {
        this(door, peer, new RequestClock(door, peer), false);
    }

    private ArrivalHandler(WebDoor door, InetSocketAddress peer, RequestClock clock, boolean inTls) {
        this.door = door;
        this.peer = peer;
        this.clock = clock;
        this.inTls = inTls;
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        context.channel().closeFuture().addListener(closed -> clock.stop());
        clock.start(context.channel());
        context.fireChannelActive();
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ChannelPipeline pipeline = context.pipeline();
        clock.noteBytes();
        SslHandler tls = inTls ? null : pipeline.get(SslHandler.class);
        if (tls != null) {
            pipeline.addAfter(pipeline.context(tls).name(), null, new ArrivalHandler(door, peer, clock, true));
        } else if (!replaceDecoder(pipeline)) {
            ReferenceCountUtil.release(message);
            return;
        }
        context.fireChannelRead(message);
        if (!context.isRemoved()) {
            pipeline.remove(this);
        }
    }

    private boolean replaceDecoder(ChannelPipeline pipeline) {
        ChannelHandlerContext decoder = pipeline.context(HttpRequestDecoder.class);
        ChannelHandlerContext encoder = pipeline.context(HttpResponseEncoder.class);
        if (decoder == null || encoder == null) {
            // The broker must not read a request without the door's limits.
            door.recordRefusal(WebRefusal.INTERNAL, peer, "the HTTP server must have a decoder that the door can "
                + "replace: handlers=" + pipeline.names());
            pipeline.channel().close();
            return false;
        }
        RequestLimits limits = door.requestLimits();
        pipeline.replace(decoder.handler(), decoder.name(), new RequestDecoder(limits, clock));
        pipeline.addAfter(encoder.name(), null, new RequestGate(door, peer, limits));
        return true;
    }
}
