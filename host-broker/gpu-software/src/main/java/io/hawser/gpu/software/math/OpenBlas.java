package io.hawser.gpu.software.math;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.backend.NativeLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** The functions of OpenBLAS (cblas.h) that the software GPU calls, on addresses of its memory. Any thread. */
final class OpenBlas {
    private static final int COLUMN_MAJOR = 102; // CblasColMajor

    private final MethodHandle[] gemm;

    OpenBlas(NativeLibrary library) {
        gemm = new MethodHandle[] {
            library.find("cblas_sgemm", 0, gemm(JAVA_FLOAT)),
            library.find("cblas_dgemm", 0, gemm(JAVA_DOUBLE)),
            library.find("cblas_cgemm", 0, gemm(JAVA_LONG)),
            library.find("cblas_zgemm", 0, gemm(JAVA_LONG)),
        };
        for (String name : new String[] {"cblas_sgemm", "cblas_dgemm", "cblas_cgemm", "cblas_zgemm"}) {
            if (!library.has(name)) {
                throw new IllegalStateException(library + " must have a function: function=" + name);
            }
        }
    }

    private static MemoryLayout[] gemm(MemoryLayout scalar) {
        return new MemoryLayout[] {JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, scalar, JAVA_LONG,
            JAVA_INT, JAVA_LONG, JAVA_INT, scalar, JAVA_LONG, JAVA_INT};
    }

    private static long copy(Arena arena, Type type, MemorySegment scalar) {
        return arena.allocate(Type.MAX_BYTES, Long.BYTES).copyFrom(scalar.asSlice(0, type.bytes())).address();
    }

    /** Dimensions of a product; {@code transa} and {@code transb} are cblas.h's CBLAS_TRANSPOSE. */
    record Shape(int transa, int transb, int m, int n, int k, int lda, int ldb, int ldc) {
    }

    /** C = alpha * op(A) * op(B) + beta * C, with matrices at addresses; scalars hold a number of the type. */
    void gemm(Type type, Shape s, MemorySegment alpha, long a, long b, MemorySegment beta, long c) {
        try (Arena arena = Arena.ofConfined()) {
            switch (type) {
                case FLOAT -> {
                    int _ = (int) gemm[0].invokeExact(COLUMN_MAJOR, s.transa, s.transb, s.m, s.n, s.k,
                        alpha.get(JAVA_FLOAT, 0), a, s.lda, b, s.ldb, beta.get(JAVA_FLOAT, 0), c, s.ldc);
                }
                case DOUBLE -> {
                    int _ = (int) gemm[1].invokeExact(COLUMN_MAJOR, s.transa, s.transb, s.m, s.n, s.k,
                        alpha.get(JAVA_DOUBLE, 0), a, s.lda, b, s.ldb, beta.get(JAVA_DOUBLE, 0), c, s.ldc);
                }
                default -> {
                    long alphaAddress = copy(arena, type, alpha);
                    long betaAddress = copy(arena, type, beta);
                    int _ = (int) gemm[type == Type.COMPLEX ? 2 : 3].invokeExact(COLUMN_MAJOR, s.transa, s.transb, s.m,
                        s.n, s.k, alphaAddress, a, s.lda, b, s.ldb, betaAddress, c, s.ldc);
                }
            }
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }
}
