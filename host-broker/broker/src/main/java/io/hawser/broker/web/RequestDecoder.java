package io.hawser.broker.web;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.HttpDecoderConfig;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpMessage;
import io.netty.handler.codec.http.HttpRequestDecoder;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.handler.codec.http.TooLongHttpHeaderException;
import io.netty.util.AsciiString;
import java.util.List;
import java.util.Set;

/**
 * Netty's decoder of requests with the door's limits. It rejects a request of ambiguous length. Event loop of its
 * connection only.
 */
final class RequestDecoder extends HttpRequestDecoder {
    private static final Set<HttpVersion> VERSIONS = Set.of(HttpVersion.HTTP_1_0, HttpVersion.HTTP_1_1);

    private final int maxFields;
    private final RequestClock clock;
    private int fields;

    /** The door rejects the request; the message contains no data of the request. */
    static final class MalformedException extends RuntimeException {
        private static final long serialVersionUID = 1;

        private MalformedException(String rule) {
            super(rule);
        }
    }

    RequestDecoder(RequestLimits limits, RequestClock clock) {
        super(new HttpDecoderConfig().setMaxHeaderSize(limits.maxHeadBytes()));
        maxFields = limits.maxHeadFields();
        this.clock = clock;
    }

    @Override
    protected void decode(ChannelHandlerContext context, ByteBuf in, List<Object> out) throws Exception {
        if (in.isReadable()) {
            clock.start(context.channel());
        }
        super.decode(context, in, out);
        if (!out.isEmpty() && out.getLast() instanceof LastHttpContent) {
            clock.stop();
        }
    }

    @Override
    protected HttpMessage createMessage(String[] initialLine) throws Exception {
        fields = 0;
        HttpMessage request = super.createMessage(initialLine);
        if (!VERSIONS.contains(request.protocolVersion())) {
            throw new MalformedException("the version must be HTTP/1.1 or HTTP/1.0");
        }
        return request;
    }

    /** Netty calls this for each complete field line of a head and of a trailer. */
    @Override
    protected AsciiString splitHeaderName(byte[] line, int start, int length) {
        fields++;
        if (fields > maxFields) {
            throw new TooLongHttpHeaderException("a request must have at most " + maxFields + " fields");
        }
        return super.splitHeaderName(line, start, length);
    }

    /** Netty calls this once for each whole head, before it looks for a body. */
    @Override
    protected boolean isContentAlwaysEmpty(HttpMessage head) {
        List<String> codings = head.headers().getAll(HttpHeaderNames.TRANSFER_ENCODING);
        if (!codings.isEmpty()) {
            // RFC 9112, 6.1 and 6.3: a proxy before the broker may have read another length.
            if (head.headers().contains(HttpHeaderNames.CONTENT_LENGTH)) {
                throw new MalformedException("a request must not have both Content-Length and Transfer-Encoding");
            }
            if (!head.protocolVersion().equals(HttpVersion.HTTP_1_1) || codings.size() != 1
                || !HttpHeaderValues.CHUNKED.contentEqualsIgnoreCase(codings.getFirst().strip())) {
                throw new MalformedException("Transfer-Encoding must be chunked, once, and in HTTP/1.1");
            }
        }
        return super.isContentAlwaysEmpty(head);
    }
}
