package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * CUDA arrays, textures and surfaces of a GPU, as far as the Driver API's functions with handles in structures go. The
 * structures hold what the worker has checked: the backend's own handles, addresses of the session's memory, host
 * memory that stays valid until the copy is done. Threads, results and streams as in {@link GpuBackend}.
 */
public interface ArrayBackend {
    /**
     * Copies a box in stream order; one side at least is an array.
     *
     * @param cudaMemcpy3d the struct CUDA_MEMCPY3D; read before this returns. Host memory is native.
     */
    int copy(MemorySegment cudaMemcpy3d, long stream);

    /**
     * Makes a texture object in the current context.
     *
     * @param out receives its number (8 bytes), which is what kernels take.
     * @param resource the struct CUDA_RESOURCE_DESC.
     * @param texture the struct CUDA_TEXTURE_DESC.
     * @param view the struct CUDA_RESOURCE_VIEW_DESC, or {@link MemorySegment#NULL}.
     */
    int createTexture(MemorySegment out, MemorySegment resource, MemorySegment texture, MemorySegment view);

    /**
     * Makes a surface object in the current context.
     *
     * @param out receives its number (8 bytes), which is what kernels take.
     * @param resource the struct CUDA_RESOURCE_DESC.
     */
    int createSurface(MemorySegment out, MemorySegment resource);
}
