package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.gpu.software.exec.GlobalMemory;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.TreeMap;

/**
 * The attached region and the parts of it that kernels may use. A part lies at its real address, so its device address
 * is where this process has it. Decoder's thread only.
 */
final class HostMemory {
    /** What a region's heap gives out, and the page of the machines that this runs on. */
    private static final long PAGE_BYTES = 4096;

    private final GlobalMemory arena;
    private final TreeMap<Long, Long> parts = new TreeMap<>();
    private MemorySegment region;

    HostMemory(GlobalMemory arena) {
        this.arena = arena;
    }

    /** Whether parts of a region can be mapped. */
    boolean isPossible() {
        return arena.canMapHost();
    }

    /** Whether there is a region whose parts can be mapped. */
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
     * Opens a part to kernels.
     *
     * @return CUDA_ERROR_INVALID_VALUE unless the part is whole pages of the region; 712 if some of it is mapped.
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

    /** Closes a part; 713 if none begins at the address. */
    int unmap(long address) {
        Long bytes = parts.remove(address);
        if (bytes == null) {
            return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        }
        arena.markHostUnmapped(address, bytes);
        return CUDA_SUCCESS;
    }
}
