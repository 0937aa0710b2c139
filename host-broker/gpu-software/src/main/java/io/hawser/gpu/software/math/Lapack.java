package io.hawser.gpu.software.math;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * LAPACK's functions (lapacke.h) on matrices of one type by columns, at real addresses that the worker has checked.
 * Each returns LAPACK's info. Any thread.
 */
final class Lapack {
    private static final int COLUMNS = 102; // LAPACK_COL_MAJOR
    private static final String PREFIX = "LAPACKE_";
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final OpenBlas blas;
    private final Type type;

    Lapack(OpenBlas blas, Type type) {
        this.blas = blas;
        this.type = type;
    }

    /** Whether the library has LAPACK. LAPACKE then reports no matrix with a NaN as a wrong argument. */
    static boolean isIn(OpenBlas blas) {
        if (!blas.has(PREFIX + "spotrf") || !blas.has(PREFIX + "set_nancheck")) {
            return false;
        }
        Object _ = blas.call(PREFIX + "set_nancheck", null, 0);
        return true;
    }

    private int run(String name, Object... arguments) {
        Object[] all = new Object[arguments.length + 1];
        all[0] = COLUMNS;
        System.arraycopy(arguments, 0, all, 1, arguments.length);
        return (int) blas.call(PREFIX + type.letter() + name, ValueLayout.JAVA_INT, all);
    }

    private String named(String real, String complex) {
        return type.isComplex() ? complex : real;
    }

    private static int triangle(int uplo) {
        return choice(uplo, 'L', 'U');
    }

    private static int choice(int number, int ifZero, int otherwise) {
        return number == 0 ? ifZero : otherwise;
    }

    private static int operation(int trans) {
        return "NTC".charAt(trans);
    }

    private int realBytes() {
        return type.isDouble() ? Double.BYTES : Float.BYTES;
    }

    /** {@code potrf}, {@code potri} or {@code lauum}. */
    int cholesky(String name, int uplo, int n, long a, int lda) {
        return n == 0 ? 0 : run(name, triangle(uplo), n, a, lda);
    }

    int potrs(int uplo, int n, int nrhs, long a, int lda, long b, int ldb) {
        return n == 0 || nrhs == 0 ? 0 : run("potrs", triangle(uplo), n, nrhs, a, lda, b, ldb);
    }

    /** Pivots have 32 or 64 bits. */
    int getrf(int m, int n, long a, int lda, long pivots, boolean isWide) {
        if (m == 0 || n == 0) {
            return 0;
        }
        if (!isWide) {
            return run("getrf", m, n, a, lda, pivots);
        }
        try (Arena arena = Arena.ofConfined()) {
            int count = Math.min(m, n);
            MemorySegment narrow = arena.allocate(ValueLayout.JAVA_INT, count);
            int info = run("getrf", m, n, a, lda, narrow.address());
            for (int i = 0; i < count; i++) {
                ALL.set(ValueLayout.JAVA_LONG_UNALIGNED, pivots + (long) i * Long.BYTES,
                    narrow.getAtIndex(ValueLayout.JAVA_INT, i));
            }
            return info;
        }
    }

    int getrs(int trans, int n, int nrhs, long a, int lda, long pivots, boolean isWide, long b, int ldb) {
        if (n == 0 || nrhs == 0) {
            return 0;
        }
        // A kernel may have written the pivots, and LAPACK exchanges the rows that they name.
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment narrow = arena.allocate(ValueLayout.JAVA_INT, n);
            for (int i = 0; i < n; i++) {
                long pivot = isWide ? ALL.get(ValueLayout.JAVA_LONG_UNALIGNED, pivots + (long) i * Long.BYTES)
                    : ALL.get(ValueLayout.JAVA_INT_UNALIGNED, pivots + (long) i * Integer.BYTES);
                if (pivot < 1 || pivot > n) {
                    throw new IllegalStateException("a pivot must be a row: pivot=" + pivot + " rows=" + n);
                }
                narrow.setAtIndex(ValueLayout.JAVA_INT, i, (int) pivot);
            }
            return run("getrs", operation(trans), n, nrhs, a, lda, narrow.address(), b, ldb);
        }
    }

    /** Solves with an upper triangle, whose diagonal must not have a zero. */
    int trtrs(int n, int nrhs, long a, int lda, long b, int ldb) {
        return n == 0 || nrhs == 0 ? 0 : run("trtrs", (int) 'U', (int) 'N', (int) 'N', n, nrhs, a, lda, b, ldb);
    }

    int geqrf(int m, int n, long a, int lda, long tau) {
        return m == 0 || n == 0 ? 0 : run("geqrf", m, n, a, lda, tau);
    }

    int orgqr(int m, int n, int k, long a, int lda, long tau) {
        return m == 0 || n == 0 ? 0 : run(named("orgqr", "ungqr"), m, n, k, a, lda, tau);
    }

    int ormqr(int side, int trans, int m, int n, int k, long a, int lda, long tau, long c, int ldc) {
        return m == 0 || n == 0 ? 0 : run(named("ormqr", "unmqr"), choice(side, 'L', 'R'), operation(trans), m, n,
            k, a, lda, tau, c, ldc);
    }

    int syevd(int jobz, int uplo, int n, long a, int lda, long w) {
        return n == 0 ? 0 : run(named("syevd", "heevd"), choice(jobz, 'N', 'V'), triangle(uplo), n, a, lda, w);
    }

    int sygvd(int itype, int jobz, int uplo, int n, long a, int lda, long b, int ldb, long w) {
        return n == 0 ? 0 : run(named("sygvd", "hegvd"), itype, choice(jobz, 'N', 'V'), triangle(uplo), n, a, lda,
            b, ldb, w);
    }

    int gesvd(int jobu, int jobvt, int m, int n, long a, int lda, long s, long u, int ldu, long vt, int ldvt) {
        if (m == 0 || n == 0) {
            return 0;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment superb = arena.allocate((long) Math.min(m, n) * realBytes(), Double.BYTES);
            return run("gesvd", jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, superb.address());
        }
    }

    /** Singular values with V, of which LAPACK makes the conjugate transpose. */
    int gesvdj(int jobz, boolean isEconomic, int m, int n, long a, int lda, long s, long u, int ldu, long v, int ldv) {
        if (m == 0 || n == 0) {
            return 0;
        }
        if (jobz == 0) {
            return gesvd('N', 'N', m, n, a, lda, s, 0L, m, 0L, n);
        }
        int job = isEconomic ? 'S' : 'A';
        int columns = isEconomic ? Math.min(m, n) : n;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment vt = arena.allocate((long) columns * n * type.bytes(), Type.MAX_BYTES);
            int info = gesvd(job, job, m, n, a, lda, s, u, ldu, vt.address(), columns);
            for (int column = 0; column < columns; column++) {
                for (int row = 0; row < n; row++) {
                    conjugate(vt.address() + ((long) row * columns + column) * type.bytes(),
                        v + ((long) column * ldv + row) * type.bytes());
                }
            }
            return info;
        }
    }

    private void conjugate(long from, long to) {
        MemorySegment.copy(ALL, from, ALL, to, type.bytes());
        if (type == Type.COMPLEX) {
            ALL.set(ValueLayout.JAVA_FLOAT_UNALIGNED, to + Float.BYTES, -ALL.get(ValueLayout.JAVA_FLOAT_UNALIGNED, to
                + Float.BYTES));
        } else if (type == Type.DOUBLE_COMPLEX) {
            ALL.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, to + Double.BYTES, -ALL.get(ValueLayout.JAVA_DOUBLE_UNALIGNED,
                to + Double.BYTES));
        }
    }
}
