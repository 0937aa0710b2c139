package io.hawser.gpu.software.device;

import io.hawser.gpu.software.compile.PtxKernel;

/** A kernel of a loaded module, with the attributes that a program may set. */
final class KernelFunction {
    final LoadedModule module;
    final PtxKernel kernel;
    /** CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. */
    int maxDynamicSharedBytes;

    KernelFunction(LoadedModule module, PtxKernel kernel) {
        this.module = module;
        this.kernel = kernel;
        maxDynamicSharedBytes = Math.max(0, Properties.SHARED_BYTES_PER_BLOCK - kernel.staticSharedBytes());
    }
}
