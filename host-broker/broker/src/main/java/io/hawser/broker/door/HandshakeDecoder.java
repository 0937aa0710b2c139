package io.hawser.broker.door;

import io.hawser.shm.wire.RecordLayout;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.ByteToMessageDecoder;
import io.netty.handler.codec.CorruptedFrameException;
import java.util.List;

/** Splits a peer's bytes into records of the handshake; rejects a bad length as soon as it has arrived. */
final class HandshakeDecoder extends ByteToMessageDecoder {
    /** First bytes of a TLS handshake: content type 22 and major version 3 (RFC 8446, 5.1). */
    private static final int TLS_HANDSHAKE = 0x0316;

    private boolean broken;

    @Override
    protected void decode(ChannelHandlerContext context, ByteBuf in, List<Object> out) {
        if (broken) {
            in.skipBytes(in.readableBytes());
            return;
        }
        if (in.readableBytes() < Integer.BYTES) {
            return;
        }
        int lengthBytes = in.getIntLE(in.readerIndex());
        if (lengthBytes < RecordLayout.HEADER_BYTES || lengthBytes > HandshakeRecords.MAX_RECORD_BYTES
            || lengthBytes % RecordLayout.ALIGNMENT_BYTES != 0) {
            broken = true;
            if ((lengthBytes & 0xffff) == TLS_HANDSHAKE) {
                throw new CorruptedFrameException("this port does not accept TLS; the guest must omit tls://");
            }
            throw new CorruptedFrameException("a record of the handshake must be " + RecordLayout.HEADER_BYTES + " to "
                + HandshakeRecords.MAX_RECORD_BYTES + " bytes, a multiple of " + RecordLayout.ALIGNMENT_BYTES
                + ": lengthBytes=" + lengthBytes);
        }
        if (in.readableBytes() >= lengthBytes) {
            byte[] record = new byte[lengthBytes];
            in.readBytes(record);
            out.add(record);
        }
    }

    /** Whether received bytes are not yet part of a record. */
    boolean holdsBytes() {
        return actualReadableBytes() > 0;
    }
}
