package io.hawser.worker.channel.tcp;

import io.hawser.worker.channel.RecordCutter;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.DefaultMaxMessagesRecvByteBufAllocator;

/**
 * Chooses the buffer for a socket's bytes. The rest of a long record goes directly to its staging memory, so that the
 * kernel's copy is the only one. Other bytes go to a buffer of a fixed size. Event loop only.
 */
final class ReceiveBuffers extends DefaultMaxMessagesRecvByteBufAllocator {
    /** If fewer bytes are missing, one read into a normal buffer also fetches the bytes after the record. */
    private static final int LEAST_DIRECT_BYTES = 16 * 1024;

    private static final int READS_A_TURN = 16; // reads that fill their buffer, before the event loop does other work

    private final int bufferBytes;
    private RecordCutter cutter; // null before the session
    private ByteBuf inPlace; // the last buffer, if it is staging memory of a record

    ReceiveBuffers(int bufferBytes) {
        super(READS_A_TURN);
        this.bufferBytes = bufferBytes;
    }

    /** Sets the cutter of the session whose records this socket receives. */
    void serve(RecordCutter recordCutter) {
        cutter = recordCutter;
    }

    /** Whether these bytes are already in the memory of the cutter's record. */
    boolean isInPlace(ByteBuf bytes) {
        return bytes == inPlace;
    }

    @SuppressWarnings("deprecation") // Netty offers no other way to choose the buffer
    @Override
    public Handle newHandle() {
        return new MaxMessageHandle() {
            @Override
            public int guess() {
                return bufferBytes;
            }

            @Override
            public ByteBuf allocate(ByteBufAllocator allocator) {
                int missing = cutter == null ? 0 : cutter.missingBytes();
                if (missing < LEAST_DIRECT_BYTES) {
                    inPlace = null;
                    return allocator.ioBuffer(bufferBytes);
                }
                inPlace = Unpooled.wrappedBuffer(
                    cutter.target().asSlice(cutter.targetOffset(), missing).asByteBuffer()).clear();
                return inPlace;
            }
        };
    }
}
