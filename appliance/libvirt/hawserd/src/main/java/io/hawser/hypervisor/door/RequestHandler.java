package io.hawser.hypervisor.door;

import io.hawser.client.Json;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.log.Log;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollDomainSocketChannel;
import io.netty.handler.codec.TooLongFrameException;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.handler.timeout.ReadTimeoutException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;

/**
 * One connection: reads one request, lets a thread that may block answer it, and closes. With {@code Accept:
 * application/x-ndjson} the answer is lines: {@code {"progress": ...}} for each stage, the result last.
 */
final class RequestHandler extends SimpleChannelInboundHandler<FullHttpRequest> {
    /** Name of the handler that ends a connection without a request. */
    static final String LIMIT = "request limit";

    private static final String LINES = "application/x-ndjson";

    private final Api api;
    private final ExecutorService threads;
    private final long arrivedNs = System.nanoTime();
    private boolean taken;

    RequestHandler(Api api, ExecutorService threads) {
        this.api = api;
        this.threads = threads;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) throws IOException {
        if (taken) {
            return; // one request per connection; the rest is ignored
        }
        taken = true;
        if (!request.decoderResult().isSuccess()) {
            unread(context, Api.Answer.error(400, "the request is not valid HTTP"));
            return;
        }
        int uid = ((EpollDomainSocketChannel) context.channel()).peerCredentials().uid();
        Api.Request parsed = new Api.Request(request.method().name(), request.uri(),
            request.content().toString(StandardCharsets.UTF_8), uid, arrivedNs);
        boolean lines = request.headers().contains(HttpHeaderNames.ACCEPT, LINES, true);
        context.pipeline().remove(LIMIT);
        try {
            threads.execute(() -> answer(context, parsed, lines));
        } catch (RejectedExecutionException e) {
            whole(context, Api.Answer.error(503, "hawserd is stopping"));
        }
    }

    private void answer(ChannelHandlerContext context, Api.Request request, boolean lines) {
        if (lines) {
            HttpResponse head = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
            head.headers().set(HttpHeaderNames.CONTENT_TYPE, LINES).set(HttpHeaderNames.CONNECTION, "close");
            context.writeAndFlush(head);
        }
        Api.Answer answer;
        try {
            answer = api.answer(request, text -> {
                if (lines) {
                    line(context, Map.of("progress", text));
                }
            });
        } catch (RuntimeException e) {
            Log.fault("", e);
            answer = Api.Answer.error(500, "hawserd has failed; see its log");
        }
        if (lines) {
            line(context, Map.of("status", answer.status(), "answer", answer.body()));
            context.writeAndFlush(LastHttpContent.EMPTY_LAST_CONTENT).addListener(ChannelFutureListener.CLOSE);
        } else {
            whole(context, answer);
        }
    }

    private static void line(ChannelHandlerContext context, Object json) {
        context.writeAndFlush(new DefaultHttpContent(Unpooled.copiedBuffer(Json.line(json) + "\n",
            StandardCharsets.UTF_8)));
    }

    private static void whole(ChannelHandlerContext context, Api.Answer answer) {
        send(context, answer).addListener(ChannelFutureListener.CLOSE);
    }

    /**
     * Answers before the whole request has been read. A client that still writes would get an error from a closed
     * socket, and might never read the answer. So this connection discards further input until the client closes or
     * stays silent for a while.
     */
    private static void unread(ChannelHandlerContext context, Api.Answer answer) {
        send(context, answer).addListener(sent -> ((EpollDomainSocketChannel) context.channel()).shutdownOutput());
    }

    private static ChannelFuture send(ChannelHandlerContext context, Api.Answer answer) {
        byte[] body = (Json.line(answer.body()) + "\n").getBytes(StandardCharsets.UTF_8);
        DefaultFullHttpResponse response = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1,
            HttpResponseStatus.valueOf(answer.status()), Unpooled.wrappedBuffer(body));
        response.headers().set(HttpHeaderNames.CONTENT_TYPE, "application/json")
            .set(HttpHeaderNames.CONTENT_LENGTH, body.length).set(HttpHeaderNames.CONNECTION, "close");
        return context.writeAndFlush(response);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        if (cause instanceof TooLongFrameException && !taken) {
            taken = true;
            unread(context, Api.Answer.error(413, "a request must be shorter: a domain's XML has at most "
                + DomainXml.MAX_BYTES + " bytes"));
            return;
        }
        if (!(cause instanceof IOException) && !(cause instanceof ReadTimeoutException)) {
            Log.fault("", cause);
        }
        context.close(); // the client is gone, or sent no request in time
    }
}
