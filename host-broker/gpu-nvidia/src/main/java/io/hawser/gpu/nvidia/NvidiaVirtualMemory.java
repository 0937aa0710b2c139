package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Virtual memory management by the driver. None of its objects belong to a context, so a session's remaining ones end
 * with the worker's process. Session thread only.
 */
final class NvidiaVirtualMemory implements VirtualMemory {
    private static final NativeLibrary LIBRARY = NativeLibrary.open(NvidiaProvider.LIBRARY);
    private static final MethodHandle CU_MEM_GET_ALLOCATION_GRANULARITY = find("cuMemGetAllocationGranularity",
        ADDRESS, ADDRESS, JAVA_INT);
    private static final MethodHandle CU_MEM_ADDRESS_RESERVE = find("cuMemAddressReserve", ADDRESS, JAVA_LONG,
        JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_MEM_ADDRESS_FREE = find("cuMemAddressFree", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_MEM_CREATE = find("cuMemCreate", ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG);
    private static final MethodHandle CU_MEM_RELEASE = find("cuMemRelease", JAVA_LONG);
    private static final MethodHandle CU_MEM_MAP = find("cuMemMap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG,
        JAVA_LONG);
    private static final MethodHandle CU_MEM_UNMAP = find("cuMemUnmap", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle CU_MEM_SET_ACCESS = find("cuMemSetAccess", JAVA_LONG, JAVA_LONG, ADDRESS,
        JAVA_LONG);
    private static final MethodHandle CU_MEM_GET_ALLOCATION_PROPERTIES_FROM_HANDLE =
        find("cuMemGetAllocationPropertiesFromHandle", ADDRESS, JAVA_LONG);

    // CUmemAllocationProp and CUmemAccessDesc of CUDA 13.0 cuda.h
    private static final int PROP_BYTES = 32;
    private static final int PROP_LOCATION_OFFSET = 8;
    private static final int PROP_COMPRESSION_OFFSET = 24;
    private static final int PROP_USAGE_OFFSET = 26;
    private static final int ACCESS_BYTES = 12;
    private static final int ACCESS_FLAGS_OFFSET = 8;
    private static final int TYPE_PINNED = 1; // CU_MEM_ALLOCATION_TYPE_PINNED
    private static final int LOCATION_DEVICE = 1; // CU_MEM_LOCATION_TYPE_DEVICE

    private static MethodHandle find(String symbol, MemoryLayout... parameters) {
        return LIBRARY.find(symbol, CUresult.CUDA_ERROR_NOT_SUPPORTED, parameters);
    }

    private static MemorySegment prop(Arena arena, int device, int compression, int usage) {
        MemorySegment prop = arena.allocate(PROP_BYTES, Long.BYTES);
        prop.set(JAVA_INT, 0, TYPE_PINNED);
        location(prop.asSlice(PROP_LOCATION_OFFSET), device);
        prop.set(JAVA_BYTE, PROP_COMPRESSION_OFFSET, (byte) compression);
        prop.set(JAVA_SHORT, PROP_USAGE_OFFSET, (short) usage);
        return prop;
    }

    private static void location(MemorySegment location, int device) {
        location.set(JAVA_INT, 0, LOCATION_DEVICE);
        location.set(JAVA_INT, Integer.BYTES, device);
    }

    @Override
    public int granularity(int device, int compression, int usage, int option, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            return (int) CU_MEM_GET_ALLOCATION_GRANULARITY.invokeExact(out, prop(arena, device, compression, usage),
                option);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int reserve(long bytes, long alignment, long wanted, MemorySegment out) {
        try {
            return (int) CU_MEM_ADDRESS_RESERVE.invokeExact(out, bytes, alignment, wanted, 0L);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int unreserve(long address, long bytes) {
        try {
            return (int) CU_MEM_ADDRESS_FREE.invokeExact(address, bytes);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int create(long bytes, int device, int compression, int usage, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment prop = prop(arena, device, compression, usage);
            int result = (int) CU_MEM_CREATE.invokeExact(out, bytes, prop, 0L);
            if (result == 0 && compression != 0) { // compression is a request that the driver need not fulfil
                int asked = (int) CU_MEM_GET_ALLOCATION_PROPERTIES_FROM_HANDLE.invokeExact(prop,
                    out.get(JAVA_LONG, 0));
                out.set(JAVA_INT, Long.BYTES, asked != 0 ? 0
                    : prop.get(JAVA_BYTE, PROP_COMPRESSION_OFFSET));
            }
            return result;
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int release(long handle) {
        try {
            return (int) CU_MEM_RELEASE.invokeExact(handle);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int map(long address, long bytes, long offset, long handle) {
        try {
            return (int) CU_MEM_MAP.invokeExact(address, bytes, offset, handle, 0L);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int unmap(long address, long bytes) {
        try {
            return (int) CU_MEM_UNMAP.invokeExact(address, bytes);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int setAccess(long address, long bytes, int device, int flags) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment access = arena.allocate(ACCESS_BYTES, Integer.BYTES);
            location(access, device);
            access.set(JAVA_INT, ACCESS_FLAGS_OFFSET, flags);
            return (int) CU_MEM_SET_ACCESS.invokeExact(address, bytes, access, 1L);
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }
}
