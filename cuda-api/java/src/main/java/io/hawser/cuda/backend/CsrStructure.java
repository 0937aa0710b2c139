package io.hawser.cuda.backend;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The places of the elements of a square matrix in CSR with 32-bit indices. They are a guest's, so code that follows
 * them on the host requires {@link #isWhole} first, of a copy.
 *
 * @param offsets where each row begins, and the end: one more than the rows.
 * @param columns of the elements.
 * @param base the number of the first row, column and element: 0 or 1.
 */
public record CsrStructure(MemorySegment offsets, MemorySegment columns, int base) {
    /** Number of rows. */
    public int rows() {
        return (int) (offsets.byteSize() / Integer.BYTES) - 1;
    }

    /** Number of elements. */
    public int elements() {
        return (int) (columns.byteSize() / Integer.BYTES);
    }

    /** Where a row begins, counted from 0; of the number after the last row, the end. */
    public int begin(int row) {
        return offsets.getAtIndex(ValueLayout.JAVA_INT, row) - base;
    }

    /** The column of an element, counted from 0. */
    public int column(int element) {
        return columns.getAtIndex(ValueLayout.JAVA_INT, element) - base;
    }

    /** Whether the rows follow each other and have all elements, and each column is one of the matrix. */
    public boolean isWhole() {
        int rows = rows();
        if (begin(0) != 0 || begin(rows) != elements()) {
            return false;
        }
        for (int row = 0; row < rows; row++) {
            if (begin(row) > begin(row + 1)) {
                return false;
            }
        }
        for (int element = 0; element < elements(); element++) {
            if (column(element) < 0 || column(element) >= rows) {
                return false;
            }
        }
        return true;
    }
}
