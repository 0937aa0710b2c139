package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * cublasLt of a GPU. Results are of cublasStatus_t; no method throws for any input of a guest. The thread and the
 * current context are those of {@link GpuBackend#driver}.
 */
public interface CublasLtBackend extends MathHandles {
    /** As cublasLtGetProperty; {@code value} receives an int. */
    int property(int type, MemorySegment value);

    /** Makes the library's descriptors of a product. Its status tells whether that failed. */
    Matmul matmul(Content content);

    /** Makes the library's descriptors of a transform. Its status tells whether that failed. */
    Transform transform(Content content);

    /** As cublasLtMatmulAlgoGetIds; {@code types} are the types of the computation, of scalars, A, B, C and D. */
    int algoIds(long handle, int[] types, int requested, MemorySegment ids, MemorySegment count);

    /** As cublasLtMatmulAlgoInit. */
    int algoInit(long handle, int[] types, int algoId, MemorySegment algo);

    /** As cublasLtMatmulAlgoCapGetAttribute. {@code algo} is one that the library has made. */
    int capability(MemorySegment algo, int attribute, MemorySegment value, long bytes, MemorySegment written);

    /** As cublasLtMatmulAlgoConfigGetAttribute. {@code algo} is one that the library has made. */
    int configuration(MemorySegment algo, int attribute, MemorySegment value, long bytes, MemorySegment written);

    /** As cublasLtMatmulAlgoConfigSetAttribute. {@code algo} is a copy of one that the library has made. */
    int configure(MemorySegment algo, int attribute, MemorySegment value, long bytes);

    /**
     * Content of descriptors, which the receiver may keep. Its enumerations are checked.
     *
     * @param operation the struct HwsLtMatmulDesc or HwsLtTransform. Addresses are 0.
     * @param emulation the struct HwsLtEmulation; null for a transform.
     * @param layouts the structs HwsLtLayout of A, B, C and D; of A, B and C for a transform.
     */
    record Content(MemorySegment operation, MemorySegment emulation, MemorySegment[] layouts) {
    }

    /** Arguments of a call. Addresses and scalars on the device are checked; scalars on the host hold 16 bytes. */
    record Arguments(long handle, long stream, MemorySegment alpha, MemorySegment beta, long a, long b, long c,
        long d) {
    }

    /** Descriptors with one content. Session thread. */
    interface Descriptors extends AutoCloseable {
        /** Why the library has no such descriptors; 0 when it has. The other methods need 0. */
        int status();

        @Override
        void close();
    }

    /** Descriptors of a product. {@code operation} and {@code emulation} are the content with a call's addresses. */
    interface Matmul extends Descriptors {
        /**
         * As cublasLtMatmul.
         *
         * @param algo an algorithm that the library has made or checked for this content; NULL for none.
         */
        int run(Arguments arguments, MemorySegment operation, MemorySegment emulation, MemorySegment algo,
            long workspace, long workspaceBytes);

        /**
         * As cublasLtMatmulAlgoGetHeuristic.
         *
         * @param preference the struct HwsLtPreference.
         * @param results {@code requested} results; their algorithms are input for a limited search.
         */
        int heuristic(long handle, MemorySegment operation, MemorySegment emulation, MemorySegment preference,
            int requested, MemorySegment results, MemorySegment count);

        /** As cublasLtMatmulAlgoCheck, the only call that gets an algorithm from anywhere. */
        int check(long handle, MemorySegment operation, MemorySegment emulation, MemorySegment algo,
            MemorySegment result);
    }

    /** Descriptors of a transform. */
    interface Transform extends Descriptors {
        /** As cublasLtMatrixTransform; the call has no D. */
        int run(Arguments arguments);
    }
}
