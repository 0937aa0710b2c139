package io.hawser.worker.move;

import io.hawser.shm.os.SealedMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Writes the state of a session: numbers in little endian, and bytes behind their length. One thread. */
public final class StateWriter implements AutoCloseable {
    private static final ValueLayout.OfInt I32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final long FIRST_BYTES = 64 * 1024;

    private Arena arena = Arena.ofConfined();
    private MemorySegment memory = arena.allocate(FIRST_BYTES);
    private long used;

    /** Writes a number of 4 bytes. */
    public void i32(int value) {
        long at = room(Integer.BYTES);
        memory.set(I32, at, value);
    }

    /** Writes a number of 8 bytes. */
    public void i64(long value) {
        long at = room(Long.BYTES);
        memory.set(I64, at, value);
    }

    /** Writes bytes behind their length. */
    public void bytes(MemorySegment value) {
        i64(value.byteSize());
        long at = room(value.byteSize());
        MemorySegment.copy(value, 0, memory, at, value.byteSize());
    }

    /** Number of bytes so far. */
    public long length() {
        return used;
    }

    /** Makes room for bytes, perhaps in other memory; returns their offset. */
    private long room(long bytes) {
        if (bytes > memory.byteSize() - used) {
            Arena larger = Arena.ofConfined();
            MemorySegment copy = larger.allocate(Math.max(Math.addExact(used, bytes), 2 * memory.byteSize()));
            MemorySegment.copy(memory, 0, copy, 0, used);
            arena.close();
            arena = larger;
            memory = copy;
        }
        long at = used;
        used += bytes;
        return at;
    }

    /** Copies all to memory of its own. */
    public MemorySegment copy() {
        return Arena.ofAuto().allocate(Math.max(1, used), Long.BYTES).asSlice(0, used)
            .copyFrom(memory.asSlice(0, used));
    }

    /**
     * Copies all to memory that nobody can write any more.
     *
     * @return its descriptor, which the caller closes.
     */
    public int seal() throws IOException {
        int descriptor = SealedMemory.create("hawser-move", used);
        SealedMemory.write(descriptor, memory.asSlice(0, used));
        SealedMemory.seal(descriptor);
        return descriptor;
    }

    @Override
    public void close() {
        arena.close();
    }
}
