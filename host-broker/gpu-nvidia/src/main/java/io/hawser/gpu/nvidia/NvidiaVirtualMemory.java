package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/**
 * Virtual memory management by the driver. None of its objects belong to a context, so a session's remaining ones end
 * with the worker's process. Session thread only.
 */
final class NvidiaVirtualMemory implements VirtualMemory {
    // CUmemAllocationProp and CUmemAccessDesc of CUDA 13.0 cuda.h
    private static final int PROP_BYTES = 32;
    private static final int PROP_HANDLE_TYPES_OFFSET = 4;
    private static final int PROP_LOCATION_OFFSET = 8;
    private static final int PROP_COMPRESSION_OFFSET = 24;
    private static final int PROP_RDMA_OFFSET = 25;
    private static final int PROP_USAGE_OFFSET = 26;
    private static final int ACCESS_BYTES = 12;
    private static final int ACCESS_FLAGS_OFFSET = 8;
    private static final int TYPE_PINNED = 1; // CU_MEM_ALLOCATION_TYPE_PINNED
    private static final int FILE_DESCRIPTOR = 1; // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    private static final int TILE_POOL = 1; // CU_MEM_CREATE_USAGE_TILE_POOL: memory of sparse arrays only
    private static final int LOCATION_DEVICE = 1; // CU_MEM_LOCATION_TYPE_DEVICE
    private static final int POSIX_FILE_DESCRIPTOR = 1; // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    private static final int HW_DECOMPRESS = 2; // CU_MEM_CREATE_USAGE_HW_DECOMPRESS, as cuMemAlloc's memory
    // CUdevice_attribute
    private static final int RDMA_WITH_VMM_SUPPORTED = 110;
    private static final int RDMA_SUPPORTED = 116;
    private static final int RDMA_WRITES_ORDERING = 118;
    private static final int ORDERED_FOR_OWNER = 100; // CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER
    private static final int MEM_DECOMPRESS_ALGORITHM_MASK = 136;

    private final Map<Integer, Boolean> rdma = new HashMap<>(); // by device
    private final Map<Integer, Boolean> decompression = new HashMap<>();
    private final Map<Integer, Boolean> isOrdered = new HashMap<>(); // writes of adapters need no flush
    private NvidiaAdapters adapters; // null until its first use

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
            return CudaNative.cuMemGetAllocationGranularity(out, prop(arena, device, compression, usage), option);
        }
    }

    @Override
    public int reserve(long bytes, long alignment, long wanted, MemorySegment out) {
        return CudaNative.cuMemAddressReserve(out, bytes, alignment, wanted, 0);
    }

    @Override
    public int unreserve(long address, long bytes) {
        return CudaNative.cuMemAddressFree(address, bytes);
    }

    @Override
    public int create(long bytes, int device, int compression, int usage, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment prop = prop(arena, device, compression, usage);
            prop.set(JAVA_INT, PROP_HANDLE_TYPES_OFFSET, (usage & TILE_POOL) != 0 ? 0 : FILE_DESCRIPTOR);
            int result = CudaNative.cuMemCreate(out, bytes, prop, 0);
            if (result == CUresult.CUDA_ERROR_NOT_SUPPORTED) { // the GPU cannot export memory
                prop.set(JAVA_INT, PROP_HANDLE_TYPES_OFFSET, 0);
                result = CudaNative.cuMemCreate(out, bytes, prop, 0);
            }
            if (result == 0 && compression != 0) { // compression is a request that the driver need not fulfil
                setCompression(prop, out);
            }
            return result;
        }
    }

    /** Adds the memory's actual compression to its handle in {@code out}. */
    private static void setCompression(MemorySegment prop, MemorySegment out) {
        int asked = CudaNative.cuMemGetAllocationPropertiesFromHandle(prop, out.get(JAVA_LONG, 0));
        out.set(JAVA_INT, Long.BYTES, asked != 0 ? 0 : prop.get(JAVA_BYTE, PROP_COMPRESSION_OFFSET));
    }

    @Override
    public int share(long handle, MemorySegment out) {
        return CudaNative.cuMemExportToShareableHandle(out, handle, FILE_DESCRIPTOR, 0);
    }

    @Override
    public int open(int descriptor, long bytes, MemorySegment out) {
        int result = CudaNative.cuMemImportFromShareableHandle(out, MemorySegment.ofAddress(descriptor),
            FILE_DESCRIPTOR);
        if (result == 0) {
            try (Arena arena = Arena.ofConfined()) {
                setCompression(arena.allocate(PROP_BYTES, Long.BYTES), out);
            }
        }
        return result;
    }

    @Override
    public int createSlab(long bytes, int device, MemorySegment out) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment prop = prop(arena, device, 0, hasDecompression(device) ? HW_DECOMPRESS : 0);
            prop.set(JAVA_INT, PROP_HANDLE_TYPES_OFFSET, POSIX_FILE_DESCRIPTOR);
            prop.set(JAVA_BYTE, PROP_RDMA_OFFSET, (byte) (hasRdma(device) ? 1 : 0));
            return CudaNative.cuMemCreate(out, bytes, prop, 0);
        }
    }

    @Override
    public boolean servesAdapters(int device) {
        return hasRdma(device) && attribute(RDMA_SUPPORTED, device) != 0;
    }

    @Override
    public int dmaBuf(long address, long bytes, long handle, MemorySegment out) {
        return adapters().dmaBuf(address, bytes, out);
    }

    @Override
    public int flushAdapterWrites(int device) {
        return isOrdered.computeIfAbsent(device, key -> attribute(RDMA_WRITES_ORDERING, device) >= ORDERED_FOR_OWNER)
            ? CUresult.CUDA_SUCCESS : adapters().flush();
    }

    private NvidiaAdapters adapters() {
        adapters = adapters == null ? NvidiaAdapters.open() : adapters;
        return adapters;
    }

    private boolean hasRdma(int device) {
        return rdma.computeIfAbsent(device, key -> attribute(RDMA_WITH_VMM_SUPPORTED, device) != 0);
    }

    private boolean hasDecompression(int device) {
        return decompression.computeIfAbsent(device, key -> attribute(MEM_DECOMPRESS_ALGORITHM_MASK, device) != 0);
    }

    private static int attribute(int attribute, int device) {
        return Natives.number(value -> CudaNative.cuDeviceGetAttribute(value, attribute, device), 0);
    }

    @Override
    public int release(long handle) {
        return CudaNative.cuMemRelease(handle);
    }

    @Override
    public int map(long address, long bytes, long offset, long handle) {
        return CudaNative.cuMemMap(address, bytes, offset, handle, 0);
    }

    @Override
    public int unmap(long address, long bytes) {
        return CudaNative.cuMemUnmap(address, bytes);
    }

    @Override
    public int setAccess(long address, long bytes, int device, int flags) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment access = arena.allocate(ACCESS_BYTES, Integer.BYTES);
            location(access, device);
            access.set(JAVA_INT, ACCESS_FLAGS_OFFSET, flags);
            return CudaNative.cuMemSetAccess(address, bytes, access, 1);
        }
    }
}
