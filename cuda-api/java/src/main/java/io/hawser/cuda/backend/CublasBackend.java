package io.hawser.cuda.backend;

import io.hawser.cuda.generated.cublas.CublasDriver;
import java.lang.foreign.MemorySegment;

/**
 * cuBLAS of a GPU. Results are of cublasStatus_t; no method throws for any input of a guest. The thread and the current
 * context are those of {@link GpuBackend#driver}.
 */
public interface CublasBackend {
    /** The functions. A call's handle is a pointer with the value of {@link #create}. */
    CublasDriver driver();

    /** Creates a handle in the current context; {@code out} receives it (8 bytes). */
    int create(MemorySegment out);

    /** Destroys a handle. */
    int destroy(long handle);

    /**
     * Gives a handle the state that a guest wants.
     *
     * @param content the struct HwsCublasHandle; its stream is meaningless, its workspace is checked.
     * @param stream the native stream.
     */
    int apply(long handle, MemorySegment content, long stream);

    /** Device memory that a handle takes beyond the caller's memory. */
    long handleBytes();
}
