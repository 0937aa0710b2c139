package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.gpu.software.exec.GlobalMemory;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.TreeMap;

/**
 * The attached region and the parts of it that kernels may access. The device address of a part equals its address in
 * this process. Decoder's thread only.
 */
final class HostMemory {
    /** The granularity of a region's heap; also the page size of the supported machines. */
    private static final long PAGE_BYTES = 4096;

    private final GlobalMemory arena;
    private final TreeMap<Long, Long> parts = new TreeMap<>();
    private MemorySegment region;

    HostMemory(GlobalMemory arena) {
        this.arena = arena;
    }

    /** Whether this system allows mapping parts of a region. */
    boolean isPossible() {
        return arena.canMapHost();
    }

    /** Whether a region is attached, so that its parts can be mapped. */
    boolean isAttached() {
        return region != null && isPossible();
    }

    /** See GpuBackend.attachRegion. */
    int attach(MemorySegment whole) {
        if (region != null) {
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        }
        if (!whole.isNative() || whole.byteSize() == 0 || whole.address() % PAGE_BYTES != 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (isPossible()) {
            arena.attachHost(whole);
        }
        region = whole;
        return CUDA_SUCCESS;
    }

    /**
     * Opens a part of the region to kernels.
     *
     * @return CUDA_ERROR_INVALID_VALUE unless the part is whole pages of the region; 712 if a page is already mapped.
     */
    int map(MemorySegment part) {
        if (!isPossible()) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        long address = part.address();
        long bytes = part.byteSize();
        if (region == null || !part.isNative() || bytes == 0 || (address | bytes) % PAGE_BYTES != 0
            || address < region.address() || bytes > region.byteSize() - (address - region.address())) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        Map.Entry<Long, Long> before = parts.lowerEntry(address + bytes);
        if (before != null && before.getKey() + before.getValue() > address) {
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        }
        parts.put(address, bytes);
        arena.markHostMapped(address, bytes);
        return CUDA_SUCCESS;
    }

    /** Closes a part to kernels; 713 if none begins at the address. */
    int unmap(long address) {
        Long bytes = parts.remove(address);
        if (bytes == null) {
            return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        }
        arena.markHostUnmapped(address, bytes);
        return CUDA_SUCCESS;
    }
}
