package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.backend.MemoryPools;
import io.hawser.cuda.generated.CUmemPoolProps;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The guest's own memory pools, by the driver. Session thread only. */
final class NvidiaMemoryPools implements MemoryPools {
    // CUDA 13.0 cuda.h
    private static final int TYPE_PINNED = 1; // CU_MEM_ALLOCATION_TYPE_PINNED
    private static final int LOCATION_DEVICE = 1; // CU_MEM_LOCATION_TYPE_DEVICE

    private static final int MAX_STREAMS = 64; // frees in further streams are noticed only after a later free

    private final long[] freedIn = new long[MAX_STREAMS];
    private int streams;

    /** Records that memory is freed in a stream's order. */
    void freed(long stream) {
        for (int i = 0; i < streams; i++) {
            if (freedIn[i] == stream) {
                return;
            }
        }
        if (streams < MAX_STREAMS) {
            freedIn[streams++] = stream;
        }
    }

    /** Removes a stream that is destroyed. */
    void forget(long stream) {
        for (int i = 0; i < streams; i++) {
            if (freedIn[i] == stream) {
                freedIn[i] = freedIn[--streams];
                return;
            }
        }
    }

    /** Removes all streams, because a context with its streams is destroyed. */
    void forgetAll() {
        streams = 0;
    }

    /**
     * Lets the driver notice finished frees. On driver 580 only a synchronisation of the stream itself does that:
     * waiting, cuMemPoolTrimTo, cuStreamQuery and the synchronisation of another stream do not. For an idle stream the
     * call returns at once.
     */
    @Override
    public void noticeFrees() {
        for (int i = streams - 1; i >= 0; i--) {
            long stream = freedIn[i];
            int state = CudaNative.cuStreamQuery(stream);
            if (state == CUresult.CUDA_SUCCESS) {
                state = CudaNative.cuStreamSynchronize(stream);
            }
            if (state != CUresult.CUDA_ERROR_NOT_READY) {
                forget(stream); // done, or its context has failed and frees its memory when it ends
            }
        }
    }

    @Override
    public int create(int device, long maxBytes, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment props = arena.allocate(CUmemPoolProps.BYTES, Long.BYTES);
            props.set(JAVA_INT, CUmemPoolProps.ALLOC_TYPE_OFFSET, TYPE_PINNED);
            props.set(JAVA_INT, CUmemPoolProps.LOCATION_OFFSET, LOCATION_DEVICE);
            props.set(JAVA_INT, CUmemPoolProps.LOCATION_OFFSET + Integer.BYTES, device);
            props.set(JAVA_LONG, CUmemPoolProps.MAX_SIZE_OFFSET, maxBytes);
            return CudaNative.cuMemPoolCreate(out, props);
        }
    }

    @Override
    public int getAttribute(long pool, int attribute, MemorySegment out) {
        return CudaNative.cuMemPoolGetAttribute(pool, attribute, out);
    }

    @Override
    public int setAttribute(long pool, int attribute, long value) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment in = arena.allocate(JAVA_LONG);
            in.set(JAVA_LONG, 0, value); // for an int attribute, the driver reads the first four bytes
            return CudaNative.cuMemPoolSetAttribute(pool, attribute, in);
        }
    }
}
