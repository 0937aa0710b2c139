package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.backend.MemoryPools;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.CUmemPoolProps;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Pools of a session's own, by the driver. Session thread only. */
final class NvidiaMemoryPools implements MemoryPools {
    private static final NativeLibrary LIBRARY = NativeLibrary.open(NvidiaProvider.LIBRARY);
    private static final MethodHandle CU_MEM_POOL_CREATE = find("cuMemPoolCreate", ADDRESS, ADDRESS);
    private static final MethodHandle CU_MEM_POOL_GET_ATTRIBUTE = find("cuMemPoolGetAttribute", JAVA_LONG, JAVA_INT,
        ADDRESS);
    private static final MethodHandle CU_MEM_POOL_SET_ATTRIBUTE = find("cuMemPoolSetAttribute", JAVA_LONG, JAVA_INT,
        ADDRESS);

    // CUDA 13.0 cuda.h
    private static final int TYPE_PINNED = 1; // CU_MEM_ALLOCATION_TYPE_PINNED
    private static final int LOCATION_DEVICE = 1; // CU_MEM_LOCATION_TYPE_DEVICE

    private static MethodHandle find(String symbol, MemoryLayout... parameters) {
        return LIBRARY.find(symbol, CUresult.CUDA_ERROR_NOT_SUPPORTED, parameters);
    }

    @Override
    public int create(int device, long maxBytes, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment props = arena.allocate(CUmemPoolProps.BYTES, Long.BYTES);
            props.set(JAVA_INT, CUmemPoolProps.ALLOC_TYPE_OFFSET, TYPE_PINNED);
            props.set(JAVA_INT, CUmemPoolProps.LOCATION_OFFSET, LOCATION_DEVICE);
            props.set(JAVA_INT, CUmemPoolProps.LOCATION_OFFSET + Integer.BYTES, device);
            props.set(JAVA_LONG, CUmemPoolProps.MAX_SIZE_OFFSET, maxBytes);
            return (int) CU_MEM_POOL_CREATE.invokeExact(out, props);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int getAttribute(long pool, int attribute, MemorySegment out) {
        try {
            return (int) CU_MEM_POOL_GET_ATTRIBUTE.invokeExact(pool, attribute, out);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int setAttribute(long pool, int attribute, long value) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment in = arena.allocate(JAVA_LONG);
            in.set(JAVA_LONG, 0, value); // an int's bytes are its first
            return (int) CU_MEM_POOL_SET_ATTRIBUTE.invokeExact(pool, attribute, in);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }
}
