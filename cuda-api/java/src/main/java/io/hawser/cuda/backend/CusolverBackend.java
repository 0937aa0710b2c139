package io.hawser.cuda.backend;

import io.hawser.cuda.generated.cusolver.CusolverDriver;
import java.lang.foreign.MemorySegment;

/**
 * cuSOLVER of a GPU. Results are of cusolverStatus_t; no method throws for any input of a guest. The thread and the
 * current context are those of {@link GpuBackend#driver}.
 */
public interface CusolverBackend extends MathHandles, MatDescriptions {
    /** The functions. A call's handle and settings are pointers with the values of this interface. */
    CusolverDriver driver();

    /**
     * Gives a handle the state that a guest wants.
     *
     * @param content the struct HwsSolverHandle; its stream is meaningless.
     * @param stream the native stream.
     */
    int apply(long handle, MemorySegment content, long stream);

    /** The handles of sparse systems (cusolverSpHandle_t). */
    MathHandles sparse();

    /** Gives a handle of {@link #sparse} the native stream that a guest wants. */
    int applySparse(long handle, long stream);

    /**
     * Makes a cusolverDnParams_t.
     *
     * @param content the struct HwsSolverParams.
     * @param out receives the object (8 bytes).
     */
    int createParams(MemorySegment content, MemorySegment out);

    /** Makes a syevjInfo_t or a gesvdjInfo_t; {@code out} receives the object (8 bytes). */
    int createJacobi(boolean isGesvdj, MemorySegment out);

    /**
     * Gives an object of {@link #createJacobi} its settings.
     *
     * @param content the struct HwsSolverJacobi.
     */
    int configure(boolean isGesvdj, long info, MemorySegment content);

    /** Destroys an object of {@link #createJacobi}. */
    int destroyJacobi(boolean isGesvdj, long info);
}
