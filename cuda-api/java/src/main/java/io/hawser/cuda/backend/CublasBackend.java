package io.hawser.cuda.backend;

import io.hawser.cuda.generated.cublas.CublasDriver;
import java.lang.foreign.MemorySegment;

/**
 * cuBLAS of a GPU. Results are of cublasStatus_t; no method throws for any input of a guest. The thread and the current
 * context are those of {@link GpuBackend#driver}.
 */
public interface CublasBackend extends MathHandles {
    /** The functions. A call's handle is a pointer with the value of {@link #create}. */
    CublasDriver driver();

    /**
     * Gives a handle the state that a guest wants.
     *
     * @param content the struct HwsCublasHandle; its stream is meaningless, its workspace is checked.
     * @param stream the native stream.
     */
    int apply(long handle, MemorySegment content, long stream);
}
