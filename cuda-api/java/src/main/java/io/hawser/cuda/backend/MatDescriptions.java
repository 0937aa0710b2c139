package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;

/** The descriptions of sparse matrices that functions of a math library receive. Session thread. */
public interface MatDescriptions {
    /**
     * Makes a cusparseMatDescr_t; {@code out} receives it (8 bytes). The numbers are enumerators of cuSPARSE.
     *
     * @return the library's own result, 0 for success.
     */
    int describe(int type, int fillMode, int diagType, int indexBase, MemorySegment out);
}
