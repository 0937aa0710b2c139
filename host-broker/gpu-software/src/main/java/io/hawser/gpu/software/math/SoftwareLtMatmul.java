package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_EXECUTION_FAILED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_SUCCESS;

import io.hawser.cuda.backend.CublasLtBackend.Arguments;
import io.hawser.cuda.backend.CublasLtBackend.Content;
import io.hawser.cuda.backend.CublasLtBackend.Matmul;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.cublas.cublasFillMode_t;
import io.hawser.cuda.generated.cublas.cublasOperation_t;
import io.hawser.cuda.generated.cublaslt.HwsLtEmulation;
import io.hawser.cuda.generated.cublaslt.HwsLtMatmulDesc;
import io.hawser.cuda.generated.cublaslt.cublasLtEpilogue_t;
import io.hawser.cuda.generated.cublaslt.cublasLtMatmulHeuristicResult_t;
import io.hawser.cuda.generated.cublaslt.cublasLtPointerMode_t;
import io.hawser.gpu.software.math.Product.Shape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Products of one content on the software GPU, in stream order. The product is computed by OpenBLAS without C; each of
 * its elements is then scaled, added and passed to the epilogue in double precision, and rounded once. Session thread;
 * products run on the device's threads.
 */
final class SoftwareLtMatmul implements Matmul {
    private static final int NO_TRANSPOSE = 111; // cblas.h: CblasNoTrans
    private static final int TRANSPOSE = 112;
    private static final int CONJUGATE_TRANSPOSE = 113;
    private static final int CONJUGATE = 114; // an extension of OpenBLAS
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final GpuBackend gpu;
    private final OpenBlas blas;
    private final LtMatrix a;
    private final LtMatrix b;
    private final LtMatrix c;
    private final LtMatrix d;
    private final int transA;
    private final int transB;
    private final int epilogue;
    private final long biasStride;
    private final Type biasType;
    private final int status;

    SoftwareLtMatmul(GpuBackend gpu, OpenBlas blas, Content content) {
        this.gpu = gpu;
        this.blas = blas;
        MemorySegment desc = content.operation();
        a = LtMatrix.of(content.layouts()[0]);
        b = LtMatrix.of(content.layouts()[1]);
        c = LtMatrix.of(content.layouts()[2]);
        d = LtMatrix.of(content.layouts()[3]);
        transA = desc.get(ValueLayout.JAVA_BYTE, HwsLtMatmulDesc.TRANS_A_OFFSET);
        transB = desc.get(ValueLayout.JAVA_BYTE, HwsLtMatmulDesc.TRANS_B_OFFSET);
        epilogue = desc.get(ValueLayout.JAVA_SHORT, HwsLtMatmulDesc.EPILOGUE_OFFSET);
        biasStride = desc.get(ValueLayout.JAVA_LONG, HwsLtMatmulDesc.BIAS_STRIDE_OFFSET);
        int bias = desc.get(ValueLayout.JAVA_SHORT, HwsLtMatmulDesc.BIAS_TYPE_OFFSET);
        biasType = bias < 0 ? d == null ? null : d.type() : Type.of(bias);
        status = isSupported(desc, content.emulation()) ? isValid() ? CUBLAS_STATUS_SUCCESS
            : CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_NOT_SUPPORTED;
    }

    private boolean isSupported(MemorySegment desc, MemorySegment emulation) {
        if (a == null || b == null || c == null || d == null || biasType != d.type()) {
            return false;
        }
        boolean isPlain = true;
        for (long at = HwsLtMatmulDesc.A_SCALE_MODE_OFFSET; at <= HwsLtMatmulDesc.BETA_BATCH_STRIDE_OFFSET; at++) {
            isPlain &= desc.get(ValueLayout.JAVA_BYTE, at) == 0;
        }
        int mode = desc.get(ValueLayout.JAVA_BYTE, HwsLtMatmulDesc.POINTER_MODE_OFFSET);
        boolean isTyped = SoftwareCublasLt.type(
            desc.get(ValueLayout.JAVA_SHORT, HwsLtMatmulDesc.COMPUTE_TYPE_OFFSET),
            desc.get(ValueLayout.JAVA_SHORT, HwsLtMatmulDesc.SCALE_TYPE_OFFSET), a.type(), b.type(), c.type(),
            d.type()) != null;
        return isPlain && isTyped && (mode == cublasLtPointerMode_t.CUBLASLT_POINTER_MODE_HOST
            || mode == cublasLtPointerMode_t.CUBLASLT_POINTER_MODE_DEVICE)
            && desc.get(ValueLayout.JAVA_BYTE, HwsLtMatmulDesc.TRANS_C_OFFSET) == cublasOperation_t.CUBLAS_OP_N
            && desc.get(ValueLayout.JAVA_BYTE, HwsLtMatmulDesc.FILL_MODE_OFFSET)
                == cublasFillMode_t.CUBLAS_FILL_MODE_FULL
            && emulation.get(ValueLayout.JAVA_INT, HwsLtEmulation.IS_SET_OFFSET) == 0
            && (epilogue == cublasLtEpilogue_t.CUBLASLT_EPILOGUE_DEFAULT || isEpilogue() && !d.type().isComplex());
    }

    private boolean isEpilogue() {
        return switch (epilogue) {
            case cublasLtEpilogue_t.CUBLASLT_EPILOGUE_BIAS, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_RELU,
                cublasLtEpilogue_t.CUBLASLT_EPILOGUE_RELU_BIAS, cublasLtEpilogue_t.CUBLASLT_EPILOGUE_GELU,
                cublasLtEpilogue_t.CUBLASLT_EPILOGUE_GELU_BIAS -> true;
            default -> false;
        };
    }

    private boolean isValid() {
        boolean isFlippedA = isTransposed(transA);
        boolean isFlippedB = isTransposed(transB);
        return a.isValid() && b.isValid() && c.isValid() && d.isValid()
            && (isFlippedA ? a.cols() : a.rows()) == d.rows() && (isFlippedB ? b.rows() : b.cols()) == d.cols()
            && (isFlippedA ? a.rows() : a.cols()) == (isFlippedB ? b.cols() : b.rows())
            && c.rows() == d.rows() && c.cols() == d.cols()
            && a.batch() == d.batch() && b.batch() == d.batch() && c.batch() == d.batch();
    }

    private static boolean isTransposed(int operation) {
        return operation == cublasOperation_t.CUBLAS_OP_T || operation == cublasOperation_t.CUBLAS_OP_C;
    }

    /** cblas.h's operation on the columns of memory: those of a matrix in row order are its rows. */
    private static int operation(int wanted, boolean isRowMajor) {
        boolean isConjugate = wanted == cublasOperation_t.CUBLAS_OP_C || wanted == cublasOperation_t.CUBLAS_OP_CONJG;
        boolean isFlipped = isTransposed(wanted) != isRowMajor;
        return isConjugate ? isFlipped ? CONJUGATE_TRANSPOSE : CONJUGATE : isFlipped ? TRANSPOSE : NO_TRANSPOSE;
    }

    @Override
    public int status() {
        return status;
    }

    @Override
    public void close() {
        // has no resources
    }

    @Override
    public int run(Arguments call, MemorySegment operation, MemorySegment emulation, MemorySegment algo,
        long workspace, long workspaceBytes) {
        long bias = operation.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsLtMatmulDesc.BIAS_OFFSET);
        for (long at = HwsLtMatmulDesc.A_SCALE_OFFSET; at < HwsLtMatmulDesc.BYTES; at += Long.BYTES) {
            if (operation.get(ValueLayout.JAVA_LONG_UNALIGNED, at) != 0) {
                return CUBLAS_STATUS_NOT_SUPPORTED; // scaling factors and maxima of 8-bit types
            }
        }
        if (hasBias() && bias == 0 || call.a() == 0 && d.rows() > 0 && a.rows() * a.cols() > 0
            || call.b() == 0 && d.cols() > 0 && b.rows() * b.cols() > 0) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        MemorySegment alpha = SoftwareCublasLt.stable(call.alpha());
        MemorySegment beta = SoftwareCublasLt.stable(call.beta());
        int issued = gpu.hostFunction(call.stream(), () -> compute(call, alpha, beta, bias));
        return issued == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
    }

    private boolean hasBias() {
        return (epilogue & cublasLtEpilogue_t.CUBLASLT_EPILOGUE_BIAS) != 0;
    }

    private void compute(Arguments call, MemorySegment alpha, MemorySegment beta, long bias) {
        Type type = a.type().isShort() ? Type.FLOAT : a.type();
        int rows = (int) d.rows();
        int cols = (int) d.cols();
        if (rows == 0 || cols == 0) {
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment sums = arena.allocate((long) rows * cols * type.bytes(), Type.MAX_BYTES);
            MemorySegment zero = arena.allocate(Type.MAX_BYTES, Type.MAX_BYTES);
            MemorySegment wideA = wide(arena, a);
            MemorySegment wideB = wide(arena, b);
            Shape shape = new Shape(operation(transA, a.isRowMajor()), operation(transB, b.isRowMajor()), rows, cols,
                (int) (isTransposed(transA) ? a.rows() : a.cols()), ld(a), ld(b), rows);
            for (int i = 0; i < d.batch(); i++) {
                Product.gemm(blas, type, shape, alpha, columns(a, a.matrix(call.a(), i), wideA),
                    columns(b, b.matrix(call.b(), i), wideB), zero, sums.address());
                finish(type, sums, beta, c.matrix(call.c(), i), d.matrix(call.d(), i),
                    bias + i * biasStride * biasType.bytes());
            }
        }
    }

    private static int ld(LtMatrix matrix) {
        return (int) (matrix.type().isShort() ? Math.max(1, matrix.columnRows()) : matrix.ld());
    }

    private static MemorySegment wide(Arena arena, LtMatrix matrix) {
        return matrix.type().isShort()
            ? arena.allocate(Math.max(1, matrix.rows() * matrix.cols()) * Float.BYTES, Float.BYTES) : null;
    }

    /** Address of a matrix as OpenBLAS reads it. */
    private static long columns(LtMatrix matrix, long base, MemorySegment wide) {
        if (wide == null) {
            return base;
        }
        matrix.widen(base, wide);
        return wide.address();
    }

    /** D = epilogue(sums + beta * C + bias) of one matrix. */
    private void finish(Type type, MemorySegment sums, MemorySegment beta, long from, long to, long bias) {
        double betaRe = LtMatrix.real(type, beta, 0);
        double betaIm = LtMatrix.imaginary(type, beta, 0);
        boolean addsC = betaRe != 0 || betaIm != 0; // else C is not read
        for (long col = 0; col < d.cols(); col++) {
            for (long row = 0; row < d.rows(); row++) {
                long at = (col * d.rows() + row) * type.bytes();
                double re = LtMatrix.real(type, sums, at);
                double im = LtMatrix.imaginary(type, sums, at);
                if (addsC) {
                    double cRe = c.real(from, row, col);
                    double cIm = c.imaginary(from, row, col);
                    re += betaRe * cRe - betaIm * cIm;
                    im += betaRe * cIm + betaIm * cRe;
                }
                if (hasBias()) {
                    re += LtMatrix.real(biasType, ALL, bias + row * biasType.bytes());
                }
                d.set(to, row, col, activate(re), im);
            }
        }
    }

    private double activate(double x) {
        return switch (epilogue & ~cublasLtEpilogue_t.CUBLASLT_EPILOGUE_BIAS) {
            case cublasLtEpilogue_t.CUBLASLT_EPILOGUE_RELU -> Math.max(x, 0);
            // cublasLtEpilogue_t: the approximation of GELU by tanh.
            case cublasLtEpilogue_t.CUBLASLT_EPILOGUE_GELU ->
                0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
            default -> x;
        };
    }

    @Override
    public int heuristic(long handle, MemorySegment operation, MemorySegment emulation, MemorySegment preference,
        int requested, MemorySegment results, MemorySegment count) {
        SoftwareLtAlgorithm.result(results.asSlice(0, cublasLtMatmulHeuristicResult_t.BYTES));
        count.set(ValueLayout.JAVA_INT, 0, 1);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public int check(long handle, MemorySegment operation, MemorySegment emulation, MemorySegment algo,
        MemorySegment result) {
        if (!SoftwareLtAlgorithm.is(algo)) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        SoftwareLtAlgorithm.result(result);
        return CUBLAS_STATUS_SUCCESS;
    }
}
