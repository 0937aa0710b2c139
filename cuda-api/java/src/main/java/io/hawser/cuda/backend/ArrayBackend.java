package io.hawser.cuda.backend;

import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.MemorySegment;

/**
 * CUDA arrays, textures and surfaces of a GPU: the Driver API's functions with handles in structures. The worker has
 * checked the structures' contents: the backend's own handles, addresses of the session's memory, and host memory that
 * stays valid until the copy is done. Threads, results and streams as in {@link GpuBackend}.
 */
public interface ArrayBackend {
    /**
     * Copies a box in stream order; at least one side is an array.
     *
     * @param cudaMemcpy3d the struct CUDA_MEMCPY3D; read before this returns. Host memory is native.
     */
    int copy(MemorySegment cudaMemcpy3d, long stream);

    /**
     * Maps memory onto a part of an array in stream order, or unmaps the part.
     *
     * @param arrayMapInfo the struct CUarrayMapInfo; read before this returns. The array is sparse or has deferred
     *     mapping, and the memory is from {@link VirtualMemory}. The driver checks the part's numbers.
     */
    default int mapMemory(MemorySegment arrayMapInfo, long stream) {
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
    }

    /**
     * Creates a texture object in the current context.
     *
     * @param out receives its number (8 bytes), which kernels take as a parameter.
     * @param resource the struct CUDA_RESOURCE_DESC.
     * @param texture the struct CUDA_TEXTURE_DESC.
     * @param view the struct CUDA_RESOURCE_VIEW_DESC, or {@link MemorySegment#NULL}.
     */
    int createTexture(MemorySegment out, MemorySegment resource, MemorySegment texture, MemorySegment view);

    /**
     * Creates a surface object in the current context.
     *
     * @param out receives its number (8 bytes), which kernels take as a parameter.
     * @param resource the struct CUDA_RESOURCE_DESC.
     */
    int createSurface(MemorySegment out, MemorySegment resource);
}
