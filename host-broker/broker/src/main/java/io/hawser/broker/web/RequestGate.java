package io.hawser.broker.web;

import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.DecoderResult;
import io.netty.handler.codec.PrematureChannelClosureException;
import io.netty.handler.codec.TooLongFrameException;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpStatusClass;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import java.net.InetSocketAddress;
import org.jboss.logging.Logger;

/**
 * Counts the requests of a connection without a complete answer, and closes a connection with too many. An answer is
 * complete once the socket has the last byte. Without this limit Vert.x would queue any number of requests. Event loop
 * of its connection only.
 */
final class RequestGate extends ChannelDuplexHandler {
    private static final Logger LOG = Logger.getLogger(RequestGate.class);

    private final WebDoor door;
    private final InetSocketAddress peer;
    private final RequestLimits limits;
    private int unanswered;
    private boolean over;

    RequestGate(WebDoor door, InetSocketAddress peer, RequestLimits limits) {
        this.door = door;
        this.peer = peer;
        this.limits = limits;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (over) {
            ReferenceCountUtil.release(message);
            return;
        }
        if (message instanceof HttpRequest) {
            unanswered++;
            if (unanswered > limits.maxPipelined()) {
                over = true;
                door.recordRefusal(WebRefusal.PIPELINED, peer, "requests without an answer must be at most "
                    + limits.maxPipelined());
                ReferenceCountUtil.release(message);
                context.close();
                return;
            }
        }
        if (message instanceof HttpObject part && part.decoderResult().isFailure()) {
            recordFailure(part.decoderResult());
        }
        context.fireChannelRead(message);
    }

    /** Records a failure of the decoder; Vert.x answers with the status and closes the connection. */
    private void recordFailure(DecoderResult result) {
        switch (result.cause()) {
            case TooLongFrameException tooLong -> door.recordRefusal(WebRefusal.HEAD, peer, tooLong.getMessage());
            case RequestDecoder.MalformedException bad ->
                door.recordRefusal(WebRefusal.MALFORMED, peer, bad.getMessage());
            case PrematureChannelClosureException left -> LOG.debugf("connection closed in a head: peer=%s", peer);
            // Netty's message may quote the peer.
            case Throwable other -> door.recordRefusal(WebRefusal.MALFORMED, peer, other.getClass().getSimpleName());
        }
    }

    @Override
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
        ChannelPromise written = promise;
        if (message instanceof LastHttpContent && !isInterim(message)) {
            written = promise.unvoid();
            written.addListener(done -> unanswered--);
        }
        context.write(message, written);
    }

    private static boolean isInterim(Object message) {
        return message instanceof HttpResponse answer && answer.status().codeClass() == HttpStatusClass.INFORMATIONAL;
    }
}
