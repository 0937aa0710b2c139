package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/**
 * cuSPARSELt of a GPU. Results are of cusparseStatus_t; no method throws for any input of a guest. The thread and the
 * current context are those of {@link GpuBackend#driver}.
 */
public interface CusparseLtBackend extends MathHandles {
    /** As cusparseLtGetVersion; {@code value} receives an int. */
    int version(MemorySegment value);

    /** Makes the library's objects of a content in the current context. Their status tells whether that failed. */
    Made make(long handle, Content content);

    /**
     * A content, which the receiver may keep. Its enumerations are checked; addresses lie inside the session's memory.
     *
     * @param stage how far the content goes, an HwsSltStage.
     * @param matmul the struct HwsSltMatmul; all 0 for a matrix alone.
     * @param matrices the structs HwsSltMatrix of A, B, C and D; a matrix alone is the first one.
     * @param algorithm the struct HwsSltAlgorithm; all 0 before the stage of a selection.
     */
    record Content(int stage, MemorySegment matmul, MemorySegment[] matrices, MemorySegment algorithm) {
    }

    /**
     * Arguments of a product, which are checked.
     *
     * @param alpha a float on the host, or the address of a vector, a pointer to no bytes.
     * @param beta the same.
     * @param streams the handles of {@code streamCount} streams, 8 bytes each.
     */
    record Arguments(MemorySegment alpha, MemorySegment beta, long a, long b, long c, long d, long workspace,
        MemorySegment streams, int streamCount) {
    }

    /**
     * Work on the matrix with structure. Addresses are checked.
     *
     * @param function an HwsSltFunction that the stage of the content allows.
     */
    record Change(int function, int isSparseA, int op, int pruneAlg, long input, long output, long buffer,
        long stream) {
    }

    /** The library's objects of a content. Session thread. */
    interface Made extends AutoCloseable {
        /** Why the library has no such objects; 0 when it has. The other methods need 0. */
        int status();

        /** Fills the struct HwsSltFacts, which is all 0. */
        void facts(MemorySegment facts);

        /** As cusparseLtMatmul, for a plan. */
        int run(Arguments arguments);

        /**
         * As cusparseLtMatmulSearch, for a plan. The plan no longer has its content afterwards.
         *
         * @param found the struct HwsSltAlgorithm, which receives the algorithm found.
         */
        int search(Arguments arguments, MemorySegment found);

        /** Prunes, checks or compresses the matrix with structure. */
        int change(Change change);

        @Override
        void close();
    }
}
