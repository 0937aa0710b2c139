package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * cuFFT of a GPU. Results are of cufftResult; no method throws for any input of a guest. The thread and the current
 * context are those of {@link GpuBackend#driver}. Plans have the status CUFFT_SUCCESS.
 */
public interface CufftBackend {
    /** As cufftGetVersion; {@code value} receives an int. */
    int version(MemorySegment value);

    /** As cufftGetProperty; {@code value} receives an int. */
    int property(int type, MemorySegment value);

    /**
     * The work area that a plan would need.
     *
     * @param isEstimate as cufftEstimate1d and its relatives, not as cufftGetSize1d.
     * @param out receives the bytes.
     */
    int workSize(FftPlan plan, boolean isEstimate, MemorySegment out);

    /**
     * Makes a plan without a work area in the current context.
     *
     * @param made receives the handle (8 bytes) on success.
     * @param workSize receives the bytes of the work area that an execution needs.
     */
    int make(FftPlan plan, MemorySegment made, MemorySegment workSize);

    /** Destroys a plan of {@link #make}. */
    int destroy(long handle);

    /** Device memory that a plan takes besides the work area. */
    long planBytes();

    /** Sets the stream of further executions. */
    int setStream(long handle, long stream);

    /** Sets the work area of further executions, which has the size of {@link #make}. */
    int setWorkArea(long handle, long address);

    /**
     * Executes a plan.
     *
     * @param type the cufftType of the function, which the plan serves; 0 for cufftXtExec.
     * @param input address of what {@link FftPlan#input} describes, which is checked.
     * @param output the same of {@link FftPlan#output}.
     * @param direction any number.
     */
    int execute(long handle, FftPlan plan, int type, long input, long output, int direction);
}
