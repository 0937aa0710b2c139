package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_EXECUTION_FAILED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_SUCCESS;

import io.hawser.cuda.backend.CublasLtBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.cublas.cublasComputeType_t;
import io.hawser.cuda.generated.cublas.cublasOperation_t;
import io.hawser.cuda.generated.cublas.libraryPropertyType_t;
import io.hawser.cuda.generated.cublaslt.HwsLtTransform;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * cublasLt on the software GPU: products with epilogues, and transforms, of matrices in columns or rows. Everything
 * else returns "not supported". Session thread; work runs on the device's threads.
 */
final class SoftwareCublasLt implements CublasLtBackend {
    private static final int[] VERSION = {13, 0, 0}; // of the interface, as CUDA 13.0 has it

    private final GpuBackend gpu;
    private final OpenBlas blas;
    private long lastHandle;

    SoftwareCublasLt(GpuBackend gpu, OpenBlas blas) {
        this.gpu = gpu;
        this.blas = blas;
    }

    /** The type of a product's scalars; null for a combination that this GPU lacks. */
    static Type type(int computeType, int scaleType, Type a, Type b, Type c, Type d) {
        if (a == null || a != b || c == null || c != d || d != a && !(a.isShort() && d == Type.FLOAT)) {
            return null;
        }
        Type wanted = a.isShort() ? Type.FLOAT : a;
        boolean isDouble = wanted == Type.DOUBLE || wanted == Type.DOUBLE_COMPLEX;
        boolean isKnown = switch (computeType) {
            case cublasComputeType_t.CUBLAS_COMPUTE_32F, cublasComputeType_t.CUBLAS_COMPUTE_32F_PEDANTIC,
                cublasComputeType_t.CUBLAS_COMPUTE_32F_FAST_16F, cublasComputeType_t.CUBLAS_COMPUTE_32F_FAST_16BF,
                cublasComputeType_t.CUBLAS_COMPUTE_32F_FAST_TF32 -> !isDouble;
            case cublasComputeType_t.CUBLAS_COMPUTE_64F, cublasComputeType_t.CUBLAS_COMPUTE_64F_PEDANTIC -> isDouble;
            default -> false;
        };
        return isKnown && Type.of(scaleType) == wanted ? wanted : null;
    }

    /** A number that stays after the call: its bytes, or its address on the device (a segment without bytes). */
    static MemorySegment stable(MemorySegment scalar) {
        return scalar.byteSize() == 0 ? scalar.reinterpret(Type.MAX_BYTES)
            : Arena.ofAuto().allocate(Type.MAX_BYTES, Type.MAX_BYTES).copyFrom(scalar);
    }

    @Override
    public int create(MemorySegment out) {
        out.set(ValueLayout.JAVA_LONG, 0, ++lastHandle);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public int destroy(long handle) {
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public long handleBytes() {
        return 0;
    }

    @Override
    public int property(int type, MemorySegment value) {
        if (type < libraryPropertyType_t.MAJOR_VERSION || type > libraryPropertyType_t.PATCH_LEVEL) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        value.set(ValueLayout.JAVA_INT, 0, VERSION[type]);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public Matmul matmul(Content content) {
        return new SoftwareLtMatmul(gpu, blas, content);
    }

    @Override
    public Transform transform(Content content) {
        return new LtTransform(content);
    }

    private static boolean isSupported(int[] types) {
        return type(types[0], types[1], Type.of(types[2]), Type.of(types[3]), Type.of(types[4]),
            Type.of(types[5])) != null;
    }

    @Override
    public int algoIds(long handle, int[] types, int requested, MemorySegment ids, MemorySegment count) {
        ids.set(ValueLayout.JAVA_INT, 0, SoftwareLtAlgorithm.ID);
        count.set(ValueLayout.JAVA_INT, 0, isSupported(types) ? 1 : 0);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public int algoInit(long handle, int[] types, int algoId, MemorySegment algo) {
        if (algoId != SoftwareLtAlgorithm.ID) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        SoftwareLtAlgorithm.write(algo);
        return isSupported(types) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    }

    @Override
    public int capability(MemorySegment algo, int attribute, MemorySegment value, long bytes, MemorySegment written) {
        return SoftwareLtAlgorithm.capability(attribute, value, bytes, written);
    }

    @Override
    public int configuration(MemorySegment algo, int attribute, MemorySegment value, long bytes,
        MemorySegment written) {
        return SoftwareLtAlgorithm.configuration(attribute, value, bytes, written);
    }

    @Override
    public int configure(MemorySegment algo, int attribute, MemorySegment value, long bytes) {
        return SoftwareLtAlgorithm.configure(attribute, value, bytes);
    }

    /** C = alpha * op(A) + beta * op(B), computed in double precision and rounded once. */
    private final class LtTransform implements Transform {
        private final LtMatrix a;
        private final LtMatrix b;
        private final LtMatrix c;
        private final Type scale;
        private final int transA;
        private final int transB;

        LtTransform(Content content) {
            a = LtMatrix.of(content.layouts()[0]);
            b = LtMatrix.of(content.layouts()[1]);
            c = LtMatrix.of(content.layouts()[2]);
            MemorySegment desc = content.operation();
            scale = Type.of(desc.get(ValueLayout.JAVA_INT, HwsLtTransform.SCALE_TYPE_OFFSET));
            transA = desc.get(ValueLayout.JAVA_INT, HwsLtTransform.TRANS_A_OFFSET);
            transB = desc.get(ValueLayout.JAVA_INT, HwsLtTransform.TRANS_B_OFFSET);
        }

        @Override
        public int status() {
            return scale == null || scale.isShort() || c == null ? CUBLAS_STATUS_NOT_SUPPORTED
                : c.isValid() ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
        }

        @Override
        public void close() {
            // has no resources
        }

        /** Whether numbers of a matrix are scaled in the scale type: complex ones, or real ones of this width. */
        private boolean isScaled(LtMatrix matrix) {
            return matrix.type() == scale || scale == Type.FLOAT && matrix.type().isShort();
        }

        private int check(LtMatrix matrix, int operation) {
            if (matrix == null || !isScaled(matrix)) {
                return CUBLAS_STATUS_NOT_SUPPORTED;
            }
            boolean isFlipped = isFlipped(operation);
            return matrix.isValid() && matrix.batch() == c.batch()
                && (isFlipped ? matrix.cols() : matrix.rows()) == c.rows()
                && (isFlipped ? matrix.rows() : matrix.cols()) == c.cols() ? CUBLAS_STATUS_SUCCESS
                    : CUBLAS_STATUS_INVALID_VALUE;
        }

        private boolean isFlipped(int operation) {
            return operation == cublasOperation_t.CUBLAS_OP_T || operation == cublasOperation_t.CUBLAS_OP_C;
        }

        @Override
        public int run(Arguments call) {
            int status = isScaled(c) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
            status = status != CUBLAS_STATUS_SUCCESS || call.a() == 0 ? status : check(a, transA);
            status = status != CUBLAS_STATUS_SUCCESS || call.b() == 0 ? status : check(b, transB);
            if (status != CUBLAS_STATUS_SUCCESS) {
                return status;
            }
            MemorySegment alpha = stable(call.alpha());
            MemorySegment beta = stable(call.beta());
            int issued = gpu.hostFunction(call.stream(), () -> compute(call, alpha, beta));
            return issued == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
        }

        private void compute(Arguments call, MemorySegment alpha, MemorySegment beta) {
            double[] sum = new double[2];
            for (int i = 0; i < c.batch(); i++) {
                long to = c.matrix(call.c(), i);
                for (long col = 0; col < c.cols(); col++) {
                    for (long row = 0; row < c.rows(); row++) {
                        sum[0] = 0;
                        sum[1] = 0;
                        add(sum, a, call.a(), i, transA, row, col, alpha);
                        add(sum, b, call.b(), i, transB, row, col, beta);
                        c.set(to, row, col, sum[0], sum[1]);
                    }
                }
            }
        }

        private void add(double[] sum, LtMatrix matrix, long address, int number, int operation, long row, long col,
            MemorySegment factor) {
            double factorRe = LtMatrix.real(scale, factor, 0);
            double factorIm = LtMatrix.imaginary(scale, factor, 0);
            if (address == 0 || factorRe == 0 && factorIm == 0) {
                return; // the matrix is not read
            }
            boolean isFlipped = isFlipped(operation);
            long base = matrix.matrix(address, number);
            double re = matrix.real(base, isFlipped ? col : row, isFlipped ? row : col);
            double im = matrix.imaginary(base, isFlipped ? col : row, isFlipped ? row : col);
            im = operation == cublasOperation_t.CUBLAS_OP_C || operation == cublasOperation_t.CUBLAS_OP_CONJG ? -im
                : im;
            sum[0] += factorRe * re - factorIm * im;
            sum[1] += factorRe * im + factorIm * re;
        }
    }
}
