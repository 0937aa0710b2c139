package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.backend.MemoryPools;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Memory pools. Freed blocks return to the device's allocator at once: a pool retains no memory, and the settings of a
 * pool are stored without effect. Decoder's thread only.
 */
final class SoftwarePools implements MemoryPools {
    private static final int REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3; // CUmemPool_attribute; 1, 2: other reuse
    private static final int RELEASE_THRESHOLD = 4;

    /** One pool. */
    static final class Pool {
        final boolean isDefault;
        // CUDA's defaults: every kind of reuse is allowed, and no memory is retained.
        private final long[] attributes = {0, 1, 1, 1, 0};

        Pool(boolean isDefault) {
            this.isDefault = isDefault;
        }
    }

    private final Device device;

    SoftwarePools(Device device) {
        this.device = device;
    }

    /** Whether a pool exists: CUresult. */
    static int check(Device device, long pool) {
        return device.handles.get(pool, Pool.class) == null ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }

    /** Destroys a pool; its allocations stay valid. */
    static int destroy(Device device, long handle) {
        Pool pool = device.handles.get(handle, Pool.class);
        if (pool == null || pool.isDefault) {
            // CUDA: "the device's default memory pool can't be destroyed".
            return CUDA_ERROR_INVALID_VALUE;
        }
        device.handles.remove(handle);
        return CUDA_SUCCESS;
    }

    @Override
    public int create(int ordinal, long maxBytes, MemorySegment out) {
        // The guest keeps to maxBytes. A guest that does not takes from its own quota only.
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, device.handles.add(new Pool(false)));
        return CUDA_SUCCESS;
    }

    @Override
    public int getAttribute(long handle, int attribute, MemorySegment out) {
        Pool pool = device.handles.get(handle, Pool.class);
        if (pool == null || attribute < 1) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (attribute > RELEASE_THRESHOLD) {
            return CUDA_ERROR_NOT_SUPPORTED; // the guest counts the memory in use
        }
        out.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, pool.attributes[attribute]);
        return CUDA_SUCCESS;
    }

    @Override
    public int setAttribute(long handle, int attribute, long value) {
        Pool pool = device.handles.get(handle, Pool.class);
        if (pool == null || attribute < 1) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (attribute > RELEASE_THRESHOLD) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        pool.attributes[attribute] = attribute <= REUSE_ALLOW_INTERNAL_DEPENDENCIES ? (int) value : value;
        return CUDA_SUCCESS;
    }
}
