package io.hawser.gpu.software.math;

import io.hawser.cuda.generated.cusparse.cusparseOperation_t;
import java.util.Arrays;

/** Products and conversions of sparse matrices, computed in double. Any thread. */
final class SparseWork {
    /** Numbers of a column of a result, 128 MiB: the worker has a heap of 1 GiB. */
    static final long MAX_ROWS = 1 << 23;

    private SparseWork() {
    }

    /** A factor: the real and the imaginary part. */
    record Factor(double real, double imaginary) {
        boolean isZero() {
            return real == 0 && imaginary == 0;
        }
    }

    /**
     * c = alpha * op(a) * op(b) + beta * c. Dense vectors are matrices of one column. The sizes fit each other, and c
     * has at most {@link #MAX_ROWS} rows.
     */
    static void multiply(SparseMatrix a, int opA, SparseMatrix b, int opB, SparseMatrix c, long columns, Factor alpha,
        Factor beta, long rows) {
        boolean isTransposed = opA != cusparseOperation_t.CUSPARSE_OPERATION_NON_TRANSPOSE;
        int signA = opA == cusparseOperation_t.CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? -1 : 1;
        int signB = opB == cusparseOperation_t.CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE ? -1 : 1;
        boolean isBTransposed = opB != cusparseOperation_t.CUSPARSE_OPERATION_NON_TRANSPOSE;
        double[] sum = new double[Math.toIntExact(2 * rows)];
        for (long column = 0; column < columns; column++) {
            Arrays.fill(sum, 0);
            long j = column;
            a.visit((row, col, at) -> {
                long from = isTransposed ? row : col;
                int to = Math.toIntExact(2 * (isTransposed ? col : row));
                long place = isBTransposed ? b.place(j, from) : b.place(from, j);
                double real = a.part(at, 0);
                double imaginary = signA * a.part(at, 1);
                double otherReal = b.part(place, 0);
                double other = signB * b.part(place, 1);
                sum[to] += real * otherReal - imaginary * other;
                sum[to + 1] += real * other + imaginary * otherReal;
            });
            for (int row = 0; row < rows; row++) {
                long place = c.place(row, column);
                double real = alpha.real() * sum[2 * row] - alpha.imaginary() * sum[2 * row + 1];
                double imaginary = alpha.real() * sum[2 * row + 1] + alpha.imaginary() * sum[2 * row];
                if (!beta.isZero()) { // documented: the result need not be valid numbers then
                    double oldReal = c.part(place, 0);
                    double old = c.part(place, 1);
                    real += beta.real() * oldReal - beta.imaginary() * old;
                    imaginary += beta.real() * old + beta.imaginary() * oldReal;
                }
                c.set(place, real, imaginary);
            }
        }
    }

    /** Writes a sparse matrix into a dense one. */
    static void toDense(SparseMatrix sparse, SparseMatrix dense) {
        for (long col = 0; col < dense.cols(); col++) {
            for (long row = 0; row < dense.rows(); row++) {
                dense.set(dense.place(row, col), 0, 0);
            }
        }
        sparse.visit((row, col, at) -> {
            if (row < 0 || row >= dense.rows() || col < 0 || col >= dense.cols()) {
                throw new IndexOutOfBoundsException("an element must lie in the matrix");
            }
            dense.set(dense.place(row, col), sparse.part(at, 0), sparse.part(at, 1));
        });
    }

    /** Counts the elements of a dense matrix that are not 0, and writes where the rows of a sparse one begin. */
    static long count(SparseMatrix dense, SparseMatrix sparse) {
        long count = 0;
        for (long row = 0; row < dense.rows(); row++) {
            sparse.setRow(row, count);
            for (long col = 0; col < dense.cols(); col++) {
                count += isPresent(dense, dense.place(row, col)) ? 1 : 0;
            }
        }
        sparse.setRow(dense.rows(), count);
        return count;
    }

    private static boolean isPresent(SparseMatrix dense, long place) {
        return dense.part(place, 0) != 0 || dense.part(place, 1) != 0;
    }

    /** Writes the elements of a dense matrix that are not 0. */
    static void toSparse(SparseMatrix dense, SparseMatrix sparse) {
        long at = 0;
        for (long row = 0; row < dense.rows(); row++) {
            sparse.setRow(row, at);
            for (long col = 0; col < dense.cols(); col++) {
                long place = dense.place(row, col);
                if (isPresent(dense, place)) {
                    sparse.setElement(at, row, col);
                    sparse.set(at++, dense.part(place, 0), dense.part(place, 1));
                }
            }
        }
        sparse.setRow(dense.rows(), at);
    }
}
