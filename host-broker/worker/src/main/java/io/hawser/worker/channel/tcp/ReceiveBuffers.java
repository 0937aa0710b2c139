package io.hawser.worker.channel.tcp;

import io.hawser.worker.channel.RecordCutter;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.DefaultMaxMessagesRecvByteBufAllocator;

/**
 * Where a socket's bytes go: to the place in staging memory where a long record still lacks them, so that the kernel's
 * copy is the only one; else into a buffer of a fixed size. Event loop only.
 */
final class ReceiveBuffers extends DefaultMaxMessagesRecvByteBufAllocator {
    /** With less to come, a buffer brings what is behind the record as well. */
    private static final int LEAST_DIRECT_BYTES = 16 * 1024;

    private static final int READS_A_TURN = 16; // of buffers that came full, before the loop does anything else

    private final int bufferBytes;
    private RecordCutter cutter; // null before the session
    private ByteBuf inPlace; // the last buffer, if it is a record's own memory

    ReceiveBuffers(int bufferBytes) {
        super(READS_A_TURN);
        this.bufferBytes = bufferBytes;
    }

    /** Whose records are received from now on. */
    void serve(RecordCutter recordCutter) {
        cutter = recordCutter;
    }

    /** Whether what has been read is where the cutter wants it. */
    boolean isInPlace(ByteBuf bytes) {
        return bytes == inPlace;
    }

    @SuppressWarnings("deprecation") // Netty's own way to say where bytes go
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
