package io.hawser.worker.move;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SealedMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Reads what a {@link StateWriter} has written. The bytes come from another worker, which a guest may control: each
 * number is checked before it is used. One thread.
 */
public final class StateReader implements AutoCloseable {
    /** Longest state. A guest fills a part of it, and the target allocates as much. */
    public static final long MAX_BYTES = 3L << 30;

    private static final ValueLayout.OfInt I32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final Arena arena;
    private final MemorySegment memory;
    private long at;

    private StateReader(Arena arena, MemorySegment memory) {
        this.arena = arena;
        this.memory = memory;
    }

    /**
     * Copies a state to private memory.
     *
     * @param descriptor of the state, which the caller closes.
     * @throws IOException if it cannot be read, or is longer than {@value #MAX_BYTES} bytes.
     */
    public static StateReader of(int descriptor) throws IOException {
        long bytes = Descriptors.fileBytes(descriptor);
        if (bytes <= 0 || bytes > MAX_BYTES) {
            throw new IOException("a state must have 1 to " + MAX_BYTES + " bytes: bytes=" + bytes);
        }
        Arena arena = Arena.ofShared(); // the control thread copies, the session thread reads
        MemorySegment memory = arena.allocate(bytes, Long.BYTES);
        SealedMemory.read(descriptor, memory);
        return new StateReader(arena, memory);
    }

    /** Reads memory that the caller keeps. */
    public static StateReader of(MemorySegment memory) {
        return new StateReader(Arena.ofShared(), memory);
    }

    /** Reads memory of an arena, which {@link #close} closes. */
    static StateReader of(Arena arena, MemorySegment memory) {
        return new StateReader(arena, memory);
    }

    /** Reads a number of 4 bytes. */
    public int i32() throws IOException {
        return memory.get(I32, take(Integer.BYTES));
    }

    /** Reads a number of 8 bytes. */
    public long i64() throws IOException {
        return memory.get(I64, take(Long.BYTES));
    }

    /**
     * Reads the number of parts that follow.
     *
     * @param leastBytes length of the shortest part, over 0: so no number asks for more memory than the state has.
     */
    public int count(int leastBytes) throws IOException {
        int count = i32();
        if (count < 0 || count > (memory.byteSize() - at) / leastBytes) {
            throw new IOException("a state must have all of its parts: parts=" + Integer.toUnsignedString(count)
                + " restBytes=" + (memory.byteSize() - at));
        }
        return count;
    }

    /** Reads bytes: memory of this reader, valid until its end. */
    public MemorySegment bytes() throws IOException {
        long length = i64();
        return memory.asSlice(take(length), length);
    }

    /** Reads a number that must be this one. */
    public void expect(long value, String what) throws IOException {
        long found = i64();
        if (found != value) {
            throw new IOException(what + " must be the same: here=" + Long.toHexString(value) + " there="
                + Long.toHexString(found));
        }
    }

    /** Requires that nothing is left. */
    public void end() throws IOException {
        if (at != memory.byteSize()) {
            throw new IOException("a state must end with its last part: restBytes=" + (memory.byteSize() - at));
        }
    }

    private long take(long bytes) throws IOException {
        if (bytes < 0 || bytes > memory.byteSize() - at) {
            throw new IOException("a state must have all of its parts: bytes=" + bytes + " restBytes="
                + (memory.byteSize() - at));
        }
        long from = at;
        at += bytes;
        return from;
    }

    @Override
    public void close() {
        arena.close();
    }
}
