package io.hawser.gpu.software.math;

import io.hawser.cuda.backend.CsrStructure;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A square sparse matrix, and what LAPACK finds with it as a dense one. Vectors are native memory, of numbers of the
 * matrix's type. Any thread.
 */
final class SparseSystem {
    private static final int LOWER = 0;
    private static final int NOTHING = 0; // CUBLAS_OP_N
    private static final int TRANSPOSE = 1;
    private static final int CONJUGATE = 2;

    private final Lapack lapack;
    private final Type type;
    private final CsrStructure structure;
    private final MemorySegment values;
    private final int n;

    /**
     * @param structure a whole one, which nobody changes.
     * @param values of the elements.
     */
    SparseSystem(Lapack lapack, Type type, CsrStructure structure, MemorySegment values) {
        this.lapack = lapack;
        this.type = type;
        this.structure = structure;
        this.values = values;
        n = structure.rows();
    }

    private int parts() {
        return type.isComplex() ? 2 : 1;
    }

    private double number(MemorySegment vector, long at, int part) {
        return part >= parts() ? 0 : SparseMatrix.number(vector, at * parts() + part, type.isDouble());
    }

    private void set(MemorySegment vector, long at, double real, double imaginary) {
        SparseMatrix.setNumber(vector, at * parts(), type.isDouble(), real);
        if (type.isComplex()) {
            SparseMatrix.setNumber(vector, at * parts() + 1, type.isDouble(), imaginary);
        }
    }

    private double size(MemorySegment vector, long at) {
        return Math.hypot(number(vector, at, 0), number(vector, at, 1));
    }

    private MemorySegment vector(Arena arena, long numbers) {
        return arena.allocate(numbers * type.bytes(), Type.MAX_BYTES);
    }

    /** The matrix by columns, minus a multiple of the identity. Elements at one place add up. */
    private MemorySegment dense(Arena arena, double real, double imaginary) {
        MemorySegment dense = vector(arena, (long) n * n);
        for (int row = 0; row < n; row++) {
            for (int at = structure.begin(row); at < structure.begin(row + 1); at++) {
                long place = (long) structure.column(at) * n + row;
                set(dense, place, number(dense, place, 0) + number(values, at, 0), number(dense, place, 1)
                    + number(values, at, 1));
            }
            long diagonal = (long) row * n + row;
            set(dense, diagonal, number(dense, diagonal, 0) - real, number(dense, diagonal, 1) - imaginary);
        }
        return dense;
    }

    /** The first row of a triangle whose element on the diagonal is not over a limit; -1 for none. */
    private int singularity(MemorySegment triangle, double limit) {
        for (int row = 0; row < n; row++) {
            if (!(size(triangle, (long) row * n + row) > limit)) {
                return row;
            }
        }
        return -1;
    }

    /**
     * Solves by QR.
     *
     * @param x the right side, which becomes the solution.
     * @return -1, or the first row whose element on R's diagonal is not over {@code tol}: {@code x} is then undefined.
     */
    int solveByQr(MemorySegment x, double tol) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment a = dense(arena, 0, 0);
            MemorySegment tau = vector(arena, n);
            lapack.geqrf(n, n, a.address(), n, tau.address());
            int singularity = singularity(a, tol);
            if (singularity < 0) {
                lapack.ormqr(0, type.isComplex() ? CONJUGATE : TRANSPOSE, n, 1, n, a.address(), n, tau.address(),
                    x.address(), n);
                lapack.trtrs(n, 1, a.address(), n, x.address(), n);
            }
            return singularity;
        }
    }

    /** As {@link #solveByQr}, by Cholesky's factors: of a Hermitian matrix, whose lower triangle counts. */
    int solveByCholesky(MemorySegment x, double tol) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment a = dense(arena, 0, 0);
            int info = lapack.cholesky("potrf", LOWER, n, a.address(), n);
            int singularity = info > 0 ? info - 1 : singularity(a, tol);
            if (singularity < 0) {
                lapack.potrs(LOWER, n, 1, a.address(), n, x.address(), n);
            }
            return singularity;
        }
    }

    /**
     * Finds the eigenvalue closest to a number, by the inverse power method.
     *
     * @param shift the number.
     * @param x the first vector, which becomes the eigenvector.
     * @param steps at most.
     * @param eps the method ends when the length of A x - mu x is below.
     * @param mu receives the eigenvalue.
     */
    void findEigenvalue(double[] shift, MemorySegment x, int steps, double eps, MemorySegment mu) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment a = dense(arena, shift[0], shift[1]);
            MemorySegment pivots = arena.allocate((long) n * Integer.BYTES, Integer.BYTES);
            MemorySegment product = vector(arena, n);
            lapack.getrf(n, n, a.address(), n, pivots.address(), false);
            for (int row = singularity(a, 0); row >= 0; row = singularity(a, 0)) {
                // The number is an eigenvalue. As LAPACK's inverse iteration, divide by a small number.
                set(a, (long) row * n + row, type.isDouble() ? Math.ulp(1.0) : Math.ulp(1.0F), 0);
            }
            normalize(x);
            for (int step = 0; step < steps; step++) {
                lapack.getrs(NOTHING, n, 1, a.address(), n, pivots.address(), false, x.address(), n);
                normalize(x);
                multiply(x, product);
                project(x, product, mu);
                if (distance(x, product, mu) < eps) {
                    return;
                }
            }
        }
    }

    private void normalize(MemorySegment x) {
        double length = 0;
        for (int row = 0; row < n; row++) {
            length = Math.hypot(length, size(x, row));
        }
        for (int row = 0; row < n; row++) {
            set(x, row, number(x, row, 0) / length, number(x, row, 1) / length);
        }
    }

    /** {@code product = A x}. */
    private void multiply(MemorySegment x, MemorySegment product) {
        for (int row = 0; row < n; row++) {
            double real = 0;
            double imaginary = 0;
            for (int at = structure.begin(row); at < structure.begin(row + 1); at++) {
                int column = structure.column(at);
                real += number(values, at, 0) * number(x, column, 0) - number(values, at, 1) * number(x, column, 1);
                imaginary += number(values, at, 0) * number(x, column, 1) + number(values, at, 1) * number(x, column,
                    0);
            }
            set(product, row, real, imaginary);
        }
    }

    /** {@code mu = x^H product}. */
    private void project(MemorySegment x, MemorySegment product, MemorySegment mu) {
        double real = 0;
        double imaginary = 0;
        for (int row = 0; row < n; row++) {
            real += number(x, row, 0) * number(product, row, 0) + number(x, row, 1) * number(product, row, 1);
            imaginary += number(x, row, 0) * number(product, row, 1) - number(x, row, 1) * number(product, row, 0);
        }
        set(mu, 0, real, imaginary);
    }

    /** The length of {@code product - mu x}. */
    private double distance(MemorySegment x, MemorySegment product, MemorySegment mu) {
        double length = 0;
        for (int row = 0; row < n; row++) {
            double real = number(mu, 0, 0) * number(x, row, 0) - number(mu, 0, 1) * number(x, row, 1);
            double imaginary = number(mu, 0, 0) * number(x, row, 1) + number(mu, 0, 1) * number(x, row, 0);
            length = Math.hypot(length, Math.hypot(number(product, row, 0) - real, number(product, row, 1)
                - imaginary));
        }
        return length;
    }
}
