package io.hawser.shm.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Access to the words of shared memory; each call reads or writes once. */
final class Words {
    static final VarHandle I64 = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();
    static final VarHandle I32 = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private Words() {
    }

    /** Requires a word to lie in the region, aligned. */
    static long check(MemorySegment region, long offset, long bytes) {
        if (offset < 0 || offset > region.byteSize() - bytes || offset % bytes != 0) {
            throw new IllegalArgumentException("a word must lie in the region, aligned: offset=" + offset + ", bytes="
                + bytes + ", regionBytes=" + region.byteSize());
        }
        return offset;
    }
}
