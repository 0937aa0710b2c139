package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_EXECUTION_FAILED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cublas.cublasStatus_t.CUBLAS_STATUS_SUCCESS;

import io.hawser.cuda.backend.CublasBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.cublas.CublasDriver;
import io.hawser.cuda.generated.cublas.CublasForm;
import io.hawser.cuda.generated.cublas.cublasComputeType_t;
import io.hawser.cuda.generated.cublas.libraryPropertyType_t;
import io.hawser.gpu.software.math.Product.Shape;
import io.hawser.gpu.software.work.HandleStreams;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;

/**
 * cuBLAS on the software GPU: the routines of {@link Routine}, products of several types, and rotations, in stream
 * order. All other functions return "not supported". Session thread; the work runs on the device's threads.
 */
final class SoftwareCublas implements CublasBackend, CublasDriver {
    private static final int[] VERSION = {13, 0, 0}; // of the interface, as CUDA 13.0 has it
    private static final int OPERATIONS = 3; // CUBLAS_OP_N, _T and _C

    private final GpuBackend gpu;
    private final OpenBlas blas;
    private final CublasDriver driver;
    private final HandleStreams streams = new HandleStreams();

    SoftwareCublas(GpuBackend gpu, OpenBlas blas) {
        this.gpu = gpu;
        this.blas = blas;
        driver = (CublasDriver) Proxy.newProxyInstance(CublasDriver.class.getClassLoader(),
            new Class<?>[] {CublasDriver.class}, (proxy, method, arguments) -> serve(method, arguments));
    }

    @Override
    public CublasDriver driver() {
        return driver;
    }

    /** Serves the functions of the table; the methods of this class serve the others. */
    private Object serve(Method method, Object[] arguments) throws Throwable {
        Routine routine = Routine.ALL.get(method.getName());
        if (routine == null) {
            try {
                return method.invoke(this, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }
        return run(routine, (CublasForm) arguments[0], (boolean) arguments[1], (MemorySegment) arguments[2],
            Arrays.copyOfRange(arguments, 3, arguments.length));
    }

    private int run(Routine routine, CublasForm form, boolean isWide, MemorySegment handle, Object[] values) {
        Type type = Type.of(form);
        boolean isComplexRotation = routine.name().equals("rot") && (form == CublasForm.C || form == CublasForm.Z);
        String function = BoundRoutine.function(routine, form);
        if (type == null || isComplexRotation || !blas.has(function)) {
            return CUBLAS_STATUS_NOT_SUPPORTED;
        }
        BoundRoutine bound = new BoundRoutine(blas, routine, function, type,
            type.isComplex() && form != CublasForm.CS && form != CublasForm.ZD, isWide);
        int status = bound.bind(values);
        if (status != CUBLAS_STATUS_SUCCESS) {
            return status;
        }
        return routine.isReduction() ? issue(handle, bound::reduce, (MemorySegment) values[values.length - 1])
            : issue(handle, bound::compute);
    }

    private int issue(MemorySegment handle, Runnable work) {
        return gpu.hostFunction(streams.of(handle.address()), work) == 0 ? CUBLAS_STATUS_SUCCESS
            : CUBLAS_STATUS_EXECUTION_FAILED;
    }

    /** Work that writes a number: to its address on the device in stream order, or to the host, after a wait. */
    private interface Reduction {
        void writeTo(MemorySegment target);
    }

    private int issue(MemorySegment handle, Reduction work, MemorySegment result) {
        if (result.byteSize() == 0) {
            MemorySegment target = result.reinterpret(Type.MAX_BYTES);
            return issue(handle, () -> work.writeTo(target));
        }
        if (gpu.driver().cuStreamQuery(streams.of(handle.address()))
            == CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
            return CUBLAS_STATUS_EXECUTION_FAILED; // the wait for a number ends the capture
        }
        MemorySegment number = Arena.ofAuto().allocate(Type.MAX_BYTES, Type.MAX_BYTES);
        CountDownLatch done = new CountDownLatch(1);
        boolean[] succeeded = new boolean[1];
        int status = issue(handle, () -> {
            try {
                work.writeTo(number);
                succeeded[0] = true;
            } finally {
                done.countDown();
            }
        });
        if (status != CUBLAS_STATUS_SUCCESS) {
            return status;
        }
        try {
            done.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return CUBLAS_STATUS_EXECUTION_FAILED;
        }
        MemorySegment.copy(number, 0, result, 0, Math.min(Type.MAX_BYTES, result.byteSize()));
        return succeeded[0] ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
    }

    @Override
    public int create(MemorySegment out) {
        streams.add(out);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public int destroy(long handle) {
        streams.remove(handle);
        return CUBLAS_STATUS_SUCCESS;
    }

    @Override
    public int apply(long handle, MemorySegment content, long stream) {
        streams.set(handle, stream);
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

    @Override
    public int cublasTrotg_v2(CublasForm form, MemorySegment handle, MemorySegment a, MemorySegment b,
        MemorySegment c, MemorySegment s) {
        String function = "cblas_" + form.name().toLowerCase(Locale.ROOT) + "rotg";
        if (!blas.has(function)) {
            return CUBLAS_STATUS_NOT_SUPPORTED;
        }
        return rotate(handle, a.byteSize() == 0, () -> {
            Object _ = blas.call(function, null, a.address(), b.address(), c.address(), s.address());
        });
    }

    @Override
    public int cublasTrotmg_v2(CublasForm form, MemorySegment handle, MemorySegment d1, MemorySegment d2,
        MemorySegment x1, MemorySegment y1, MemorySegment param) {
        Type type = Type.of(form);
        return rotate(handle, d1.byteSize() == 0, () -> {
            Object _ = blas.call("cblas_" + form.name().toLowerCase(Locale.ROOT) + "rotmg", null, d1.address(),
                d2.address(), x1.address(), type.real(y1), param.address());
        });
    }

    /** Numbers on the host depend on no work of the device. */
    private int rotate(MemorySegment handle, boolean onDevice, Runnable rotation) {
        if (onDevice) {
            return issue(handle, rotation);
        }
        rotation.run();
        return CUBLAS_STATUS_SUCCESS;
    }

    /** A matrix, or equally spaced ones. */
    private record Matrix(long address, long ld, long stride) {
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
        Product product = new Product(blas, ab, c, new Shape(Product.NO_TRANSPOSE + transa,
            Product.NO_TRANSPOSE + transb, (int) m, (int) n, (int) k, (int) left.ld, (int) right.ld,
            (int) result.ld));
        MemorySegment first = BoundRoutine.stable(alpha);
        MemorySegment second = BoundRoutine.stable(beta);
        return issue(handle, () -> {
            for (long i = 0; i < batch; i++) {
                product.compute(first, left.address + i * left.stride * ab.bytes(),
                    right.address + i * right.stride * ab.bytes(), second,
                    result.address + i * result.stride * c.bytes());
            }
        });
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
    public int cublasGemmEx(boolean isWide, MemorySegment handle, int transa, int transb, long m, long n, long k,
        MemorySegment alpha, long A, int Atype, long lda, long B, int Btype, long ldb, MemorySegment beta, long C,
        int Ctype, long ldc, int computeType, int algo) {
        return multiply(handle, type(Atype, Btype, computeType), Type.of(Ctype), transa, transb, m, n, k, alpha,
            new Matrix(A, lda, 0), new Matrix(B, ldb, 0), beta, new Matrix(C, ldc, 0), 1);
    }

    @Override
    public int cublasGemmStridedBatchedEx(boolean isWide, MemorySegment handle, int transa, int transb, long m, long n,
        long k, MemorySegment alpha, long A, int Atype, long lda, long strideA, long B, int Btype, long ldb,
        long strideB, MemorySegment beta, long C, int Ctype, long ldc, long strideC, long batchCount, int computeType,
        int algo) {
        return multiply(handle, type(Atype, Btype, computeType), Type.of(Ctype), transa, transb, m, n, k, alpha,
            new Matrix(A, lda, strideA), new Matrix(B, ldb, strideB), beta, new Matrix(C, ldc, strideC), batchCount);
    }
}
