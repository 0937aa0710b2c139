package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_EXECUTION_FAILED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_SUCCESS;

import io.hawser.cuda.backend.CublasBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.cublas.CublasDriver;
import io.hawser.cuda.generated.cublas.cublasComputeType_t;
import io.hawser.cuda.generated.cublas.libraryPropertyType_t;
import io.hawser.gpu.software.math.OpenBlas.Shape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * cuBLAS on the software GPU: products of matrices, in stream order. All other functions return "not supported".
 * Session thread; products run on the device's threads.
 */
final class SoftwareCublas implements CublasBackend, CublasDriver {
    /** cblas.h, CblasNoTrans; CblasTrans and CblasConjTrans follow. */
    static final int NO_TRANSPOSE = 111;

    private static final int[] VERSION = {13, 0, 0}; // of the interface, as CUDA 13.0 has it
    private static final int OPERATIONS = 3; // CUBLAS_OP_N, _T and _C

    private final GpuBackend gpu;
    private final OpenBlas blas;
    private final Map<Long, Long> streams = new ConcurrentHashMap<>(); // of handles
    private long lastHandle;

    SoftwareCublas(GpuBackend gpu, OpenBlas blas) {
        this.gpu = gpu;
        this.blas = blas;
    }

    @Override
    public CublasDriver driver() {
        return this;
    }

    @Override
    public int create(MemorySegment out) {
        streams.put(++lastHandle, 0L);
        out.set(ValueLayout.JAVA_LONG, 0, lastHandle);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public int destroy(long handle) {
        streams.remove(handle);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public int apply(long handle, MemorySegment content, long stream) {
        streams.put(handle, stream);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public long handleBytes() {
        return 0;
    }

    @Override
    public int cublasGetVersion_v2(long handle, MemorySegment version) {
        version.set(ValueLayout.JAVA_INT, 0, VERSION[0] * 10000 + VERSION[1] * 100 + VERSION[2]);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public int cublasGetProperty(int type_, MemorySegment value) {
        if (type_ < libraryPropertyType_t.MAJOR_VERSION || type_ > libraryPropertyType_t.PATCH_LEVEL) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        value.set(ValueLayout.JAVA_INT, 0, VERSION[type_]);
        return CUBLAS_STATUS_SUCCESS;
    }

    /** A matrix, or equally spaced ones. */
    private record Matrix(long address, long ld, long stride) {
    }

    /** A number: its bytes, or its address on the device (a segment without bytes). */
    private static MemorySegment stable(MemorySegment scalar) {
        return scalar.byteSize() == 0 ? scalar.reinterpret(Type.MAX_BYTES)
            : Arena.ofAuto().allocate(Type.MAX_BYTES, Type.MAX_BYTES).copyFrom(scalar);
    }

    private int multiply(MemorySegment handle, Type ab, Type c, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, Matrix left, Matrix right, MemorySegment beta, Matrix result, long batch) {
        if (ab == null || c == null || c != ab && !(ab.isShort() && c == Type.FLOAT)) {
            return CUBLAS_STATUS_NOT_SUPPORTED;
        }
        if (transa < 0 || transa >= OPERATIONS || transb < 0 || transb >= OPERATIONS || m < 0 || n < 0 || k < 0
            || batch < 0 || left.ld < Math.max(1, transa == 0 ? m : k) || right.ld < Math.max(1, transb == 0 ? k : n)
            || result.ld < Math.max(1, m)) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        if (m == 0 || n == 0 || batch == 0) {
            return CUBLAS_STATUS_SUCCESS;
        }
        if (k > 0 && (left.address == 0 || right.address == 0)) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        if (Math.max(Math.max(m, n), Math.max(k, Math.max(left.ld, Math.max(right.ld, result.ld))))
            > Integer.MAX_VALUE) {
            return CUBLAS_STATUS_NOT_SUPPORTED; // OpenBLAS counts in 32 bits
        }
        Product product = new Product(blas, ab, c, new Shape(NO_TRANSPOSE + transa, NO_TRANSPOSE + transb, (int) m,
            (int) n, (int) k, (int) left.ld, (int) right.ld, (int) result.ld));
        MemorySegment first = stable(alpha);
        MemorySegment second = stable(beta);
        int issued = gpu.hostFunction(streams.get(handle.address()), () -> {
            for (long i = 0; i < batch; i++) {
                product.compute(first, left.address + i * left.stride * ab.bytes(),
                    right.address + i * right.stride * ab.bytes(), second,
                    result.address + i * result.stride * c.bytes());
            }
        });
        return issued == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
    }

    /** The type of a product with this computation; null for one that this GPU lacks. */
    private static Type type(int aType, int bType, int computeType) {
        Type type = aType == bType ? Type.of(aType) : null;
        boolean isDouble = type == Type.DOUBLE || type == Type.DOUBLE_COMPLEX;
        return switch (computeType) {
            case cublasComputeType_t.CUBLAS_COMPUTE_32F, cublasComputeType_t.CUBLAS_COMPUTE_32F_PEDANTIC,
                cublasComputeType_t.CUBLAS_COMPUTE_32F_FAST_16F, cublasComputeType_t.CUBLAS_COMPUTE_32F_FAST_16BF,
                cublasComputeType_t.CUBLAS_COMPUTE_32F_FAST_TF32 -> isDouble ? null : type;
            case cublasComputeType_t.CUBLAS_COMPUTE_64F, cublasComputeType_t.CUBLAS_COMPUTE_64F_PEDANTIC ->
                isDouble ? type : null;
            default -> null;
        };
    }

    @Override
    public int cublasSgemm_v2(MemorySegment handle, int transa, int transb, int m, int n, int k,
        MemorySegment alpha, long A, int lda, long B, int ldb, MemorySegment beta, long C, int ldc) {
        return multiply(handle, Type.FLOAT, Type.FLOAT, transa, transb, m, n, k, alpha, new Matrix(A, lda, 0),
            new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasSgemmStridedBatched(MemorySegment handle, int transa, int transb, int m, int n, int k,
        MemorySegment alpha, long A, int lda, long strideA, long B, int ldb, long strideB, MemorySegment beta, long C,
        int ldc, long strideC, int batchCount) {
        return multiply(handle, Type.FLOAT, Type.FLOAT, transa, transb, m, n, k, alpha, new Matrix(A, lda, strideA),
            new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }

    @Override
    public int cublasSgemm_v2_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, long lda, long B, long ldb, MemorySegment beta, long C, long ldc) {
        return multiply(handle, Type.FLOAT, Type.FLOAT, transa, transb, m, n, k, alpha, new Matrix(A, lda, 0),
            new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasSgemmStridedBatched_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, long lda, long strideA, long B, long ldb, long strideB, MemorySegment beta, long C,
        long ldc, long strideC, long batchCount) {
        return multiply(handle, Type.FLOAT, Type.FLOAT, transa, transb, m, n, k, alpha, new Matrix(A, lda, strideA),
            new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }

    @Override
    public int cublasDgemm_v2(MemorySegment handle, int transa, int transb, int m, int n, int k,
        MemorySegment alpha, long A, int lda, long B, int ldb, MemorySegment beta, long C, int ldc) {
        return multiply(handle, Type.DOUBLE, Type.DOUBLE, transa, transb, m, n, k, alpha, new Matrix(A, lda, 0),
            new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasDgemmStridedBatched(MemorySegment handle, int transa, int transb, int m, int n, int k,
        MemorySegment alpha, long A, int lda, long strideA, long B, int ldb, long strideB, MemorySegment beta, long C,
        int ldc, long strideC, int batchCount) {
        return multiply(handle, Type.DOUBLE, Type.DOUBLE, transa, transb, m, n, k, alpha, new Matrix(A, lda, strideA),
            new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }

    @Override
    public int cublasDgemm_v2_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, long lda, long B, long ldb, MemorySegment beta, long C, long ldc) {
        return multiply(handle, Type.DOUBLE, Type.DOUBLE, transa, transb, m, n, k, alpha, new Matrix(A, lda, 0),
            new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasDgemmStridedBatched_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, long lda, long strideA, long B, long ldb, long strideB, MemorySegment beta, long C,
        long ldc, long strideC, long batchCount) {
        return multiply(handle, Type.DOUBLE, Type.DOUBLE, transa, transb, m, n, k, alpha, new Matrix(A, lda, strideA),
            new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }

    @Override
    public int cublasCgemm_v2(MemorySegment handle, int transa, int transb, int m, int n, int k,
        MemorySegment alpha, long A, int lda, long B, int ldb, MemorySegment beta, long C, int ldc) {
        return multiply(handle, Type.COMPLEX, Type.COMPLEX, transa, transb, m, n, k, alpha, new Matrix(A, lda, 0),
            new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasCgemmStridedBatched(MemorySegment handle, int transa, int transb, int m, int n, int k,
        MemorySegment alpha, long A, int lda, long strideA, long B, int ldb, long strideB, MemorySegment beta, long C,
        int ldc, long strideC, int batchCount) {
        return multiply(handle, Type.COMPLEX, Type.COMPLEX, transa, transb, m, n, k, alpha, new Matrix(A, lda, strideA),
            new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }

    @Override
    public int cublasCgemm_v2_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, long lda, long B, long ldb, MemorySegment beta, long C, long ldc) {
        return multiply(handle, Type.COMPLEX, Type.COMPLEX, transa, transb, m, n, k, alpha, new Matrix(A, lda, 0),
            new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasCgemmStridedBatched_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, long lda, long strideA, long B, long ldb, long strideB, MemorySegment beta, long C,
        long ldc, long strideC, long batchCount) {
        return multiply(handle, Type.COMPLEX, Type.COMPLEX, transa, transb, m, n, k, alpha, new Matrix(A, lda, strideA),
            new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }

    @Override
    public int cublasZgemm_v2(MemorySegment handle, int transa, int transb, int m, int n, int k,
        MemorySegment alpha, long A, int lda, long B, int ldb, MemorySegment beta, long C, int ldc) {
        return multiply(handle, Type.DOUBLE_COMPLEX, Type.DOUBLE_COMPLEX, transa, transb, m, n, k, alpha,
            new Matrix(A, lda, 0), new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasZgemmStridedBatched(MemorySegment handle, int transa, int transb, int m, int n, int k,
        MemorySegment alpha, long A, int lda, long strideA, long B, int ldb, long strideB, MemorySegment beta, long C,
        int ldc, long strideC, int batchCount) {
        return multiply(handle, Type.DOUBLE_COMPLEX, Type.DOUBLE_COMPLEX, transa, transb, m, n, k, alpha,
            new Matrix(A, lda, strideA), new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }

    @Override
    public int cublasZgemm_v2_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, long lda, long B, long ldb, MemorySegment beta, long C, long ldc) {
        return multiply(handle, Type.DOUBLE_COMPLEX, Type.DOUBLE_COMPLEX, transa, transb, m, n, k, alpha,
            new Matrix(A, lda, 0), new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasZgemmStridedBatched_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, long lda, long strideA, long B, long ldb, long strideB, MemorySegment beta, long C,
        long ldc, long strideC, long batchCount) {
        return multiply(handle, Type.DOUBLE_COMPLEX, Type.DOUBLE_COMPLEX, transa, transb, m, n, k, alpha,
            new Matrix(A, lda, strideA), new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }

    @Override
    public int cublasGemmEx(MemorySegment handle, int transa, int transb, int m, int n, int k, MemorySegment alpha,
        long A, int Atype, int lda, long B, int Btype, int ldb, MemorySegment beta, long C, int Ctype, int ldc,
        int computeType, int algo) {
        return multiply(handle, type(Atype, Btype, computeType), Type.of(Ctype), transa, transb, m, n, k, alpha,
            new Matrix(A, lda, 0), new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasGemmStridedBatchedEx(MemorySegment handle, int transa, int transb, int m, int n, int k,
        MemorySegment alpha, long A, int Atype, int lda, long strideA, long B, int Btype, int ldb, long strideB,
        MemorySegment beta, long C, int Ctype, int ldc, long strideC, int batchCount, int computeType, int algo) {
        return multiply(handle, type(Atype, Btype, computeType), Type.of(Ctype), transa, transb, m, n, k, alpha,
            new Matrix(A, lda, strideA), new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }

    @Override
    public int cublasGemmEx_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, int Atype, long lda, long B, int Btype, long ldb, MemorySegment beta, long C,
        int Ctype, long ldc, int computeType, int algo) {
        return multiply(handle, type(Atype, Btype, computeType), Type.of(Ctype), transa, transb, m, n, k, alpha,
            new Matrix(A, lda, 0), new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasGemmStridedBatchedEx_64(MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, int Atype, long lda, long strideA, long B, int Btype, long ldb, long strideB,
        MemorySegment beta, long C, int Ctype, long ldc, long strideC, long batchCount, int computeType, int algo) {
        return multiply(handle, type(Atype, Btype, computeType), Type.of(Ctype), transa, transb, m, n, k, alpha,
            new Matrix(A, lda, strideA), new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }
}
