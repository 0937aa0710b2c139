package io.hawser.worker.channel;

import io.hawser.shm.RecordLayout;
import io.hawser.worker.memory.StagingPool.Staging;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Cuts the guest's bytes into records. Each record is copied once, into private memory, and its header is checked
 * before any of its payload is received. Session thread only.
 */
public final class RecordReceiver extends ChannelInboundHandlerAdapter {
    /** Records up to this length share one buffer; longer ones get memory that a copy can be made from directly. */
    public static final int SMALL_RECORD_BYTES = 16 * 1024;

    private static final long FIRST_SEQUENCE = 3; // HELLO and PROOF were 1 and 2

    private final RecordHandler handler;
    private final ByteBuffer headerBytes = ByteBuffer.allocateDirect(RecordLayout.HEADER_BYTES)
        .order(ByteOrder.LITTLE_ENDIAN);
    private final RecordHeader header = new RecordHeader();

    private Staging small;
    private Staging memory;
    private int missingBytes;
    private long expectedSequence = FIRST_SEQUENCE;
    private boolean discarding;

    /**
     * Makes a receiver.
     *
     * @param handler takes the records.
     */
    public RecordReceiver(RecordHandler handler) {
        this.handler = handler;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf bytes = (ByteBuf) message;
        try {
            while (bytes.isReadable() && !discarding) {
                if (memory == null) {
                    receiveHeader(bytes);
                } else {
                    receivePayload(bytes);
                }
            }
        } finally {
            bytes.release();
        }
    }

    private void receiveHeader(ByteBuf bytes) {
        int count = Math.min(headerBytes.remaining(), bytes.readableBytes());
        headerBytes.limit(headerBytes.position() + count);
        bytes.readBytes(headerBytes);
        headerBytes.limit(RecordLayout.HEADER_BYTES);
        if (headerBytes.hasRemaining()) {
            return;
        }
        headerBytes.clear();
        header.read(headerBytes);
        String violation = header.violation(expectedSequence);
        if (violation != null) {
            refuse(violation);
            return;
        }
        expectedSequence++;
        if (!handler.admit(header)) {
            discarding = true;
            return;
        }
        memory = memoryFor(header.lengthBytes());
        if (memory == null) {
            refuse("no memory for a record: lengthBytes=" + header.lengthBytes());
            return;
        }
        memory.view().limit(header.lengthBytes()).position(0).put(headerBytes);
        headerBytes.clear();
        missingBytes = header.lengthBytes() - RecordLayout.HEADER_BYTES;
        serveIfWhole();
    }

    private Staging memoryFor(int lengthBytes) {
        if (lengthBytes > SMALL_RECORD_BYTES) {
            return handler.memoryFor(lengthBytes);
        }
        if (small == null) {
            small = handler.memoryFor(SMALL_RECORD_BYTES);
        }
        return small;
    }

    private void receivePayload(ByteBuf bytes) {
        int count = Math.min(missingBytes, bytes.readableBytes());
        ByteBuffer view = memory.view();
        view.limit(view.position() + count);
        bytes.readBytes(view);
        missingBytes -= count;
        serveIfWhole();
    }

    private void serveIfWhole() {
        if (missingBytes > 0) {
            return;
        }
        Staging whole = memory;
        boolean isSmall = whole == small;
        memory = null;
        if (isSmall) {
            small = null; // the record may end the session, and that gives back what is ours
        }
        whole.view().clear();
        if (handler.record(header, whole)) {
            return;
        }
        if (isSmall && !discarding) {
            small = whole;
        } else {
            handler.giveBack(whole);
        }
    }

    private void refuse(String reason) {
        discarding = true;
        handler.refuse(reason);
    }

    /** Receives nothing more: the session has ended. What still comes is read and dropped. */
    public void discard() {
        discarding = true;
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        handler.drained();
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        handler.writabilityChanged();
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        dropPartial();
        handler.gone(null);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        dropPartial();
        handler.gone(cause);
    }

    /** Gives all memory back; nothing is received any more. */
    public void dropPartial() {
        discarding = true;
        if (memory != null && memory != small) {
            handler.giveBack(memory);
        }
        if (small != null) {
            handler.giveBack(small);
        }
        memory = null;
        small = null;
    }
}
