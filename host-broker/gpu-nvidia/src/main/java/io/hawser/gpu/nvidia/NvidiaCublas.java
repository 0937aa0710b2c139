package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.CublasBackend;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.cublas.CublasDriver;
import io.hawser.cuda.generated.cublas.CublasForeign;
import io.hawser.cuda.generated.cublas.CublasNative;
import io.hawser.cuda.generated.cublas.HwsCublasHandle;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** NVIDIA's cuBLAS. Session thread. */
final class NvidiaCublas implements CublasBackend {
    /** The workspace of a handle on a GPU of compute capability 9.0; smaller on older ones (cublasSetWorkspace). */
    private static final long HANDLE_BYTES = 32 << 20;

    private final CublasNative library;
    private final CublasForeign driver;

    NvidiaCublas(NativeLibrary library) {
        this.library = new CublasNative(library);
        driver = new CublasForeign(library);
    }

    @Override
    public CublasDriver driver() {
        return driver;
    }

    @Override
    public int create(MemorySegment out) {
        return library.cublasCreate_v2(out);
    }

    @Override
    public int destroy(long handle) {
        return library.cublasDestroy_v2(handle);
    }

    @Override
    public int apply(long handle, MemorySegment content, long stream) {
        int status = library.cublasSetStream_v2(handle, stream); // resets the workspace
        long workspaceBytes = content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsCublasHandle.WORKSPACE_BYTES_OFFSET);
        if (status == 0 && workspaceBytes != 0) {
            status = library.cublasSetWorkspace_v2(handle, MemorySegment.ofAddress(content.get(
                ValueLayout.JAVA_LONG_UNALIGNED, HwsCublasHandle.WORKSPACE_OFFSET)), workspaceBytes);
        }
        status = status != 0 ? status : library.cublasSetPointerMode_v2(handle, number(content,
            HwsCublasHandle.POINTER_MODE_OFFSET));
        status = status != 0 ? status : library.cublasSetMathMode(handle, number(content,
            HwsCublasHandle.MATH_MODE_OFFSET));
        status = status != 0 ? status : library.cublasSetAtomicsMode(handle, number(content,
            HwsCublasHandle.ATOMICS_MODE_OFFSET));
        status = status != 0 ? status : library.cublasSetSmCountTarget(handle, number(content,
            HwsCublasHandle.SM_COUNT_TARGET_OFFSET));
        int strategy = number(content, HwsCublasHandle.EMULATION_STRATEGY_OFFSET);
        // Only CUDA 12.9 and newer have it.
        return status != 0 || strategy == 0 ? status : library.cublasSetEmulationStrategy(handle, strategy);
    }

    private static int number(MemorySegment content, long offset) {
        return content.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }

    @Override
    public long handleBytes() {
        return HANDLE_BYTES;
    }
}
