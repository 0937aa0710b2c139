package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_EXECUTION_FAILED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_SUCCESS;

import io.hawser.cuda.backend.CusolverBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathHandles;
import io.hawser.cuda.generated.cublas.libraryPropertyType_t;
import io.hawser.cuda.generated.cusolver.CusolverDriver;
import io.hawser.cuda.generated.cusolver.CusolverForm;
import io.hawser.gpu.software.work.HandleStreams;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Set;
import java.util.function.IntSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * cuSOLVER on the software GPU, by OpenBLAS's LAPACK, in stream order. All other functions return "not supported".
 * Session thread; the work runs on the device's threads.
 */
final class SoftwareCusolver implements CusolverBackend, CusolverDriver {
    private static final int[] VERSION = {12, 0, 4}; // of the interface, as CUDA 13.0 has it
    private static final String SIZE = "_bufferSize";
    private static final String SPARSE = "cusolverSp";
    /** What each query answers: LAPACKE allocates for itself, and programs allocate more than nothing. */
    private static final int WORK = 16;
    private static final Set<String> METHODS = Stream.of(SoftwareCusolver.class.getDeclaredMethods())
        .map(Method::getName).collect(Collectors.toSet());
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final GpuBackend gpu;
    private final OpenBlas blas;
    private final CusolverDriver driver;
    private final SoftwareSparseSolver sparse;
    private final HandleStreams streams = new HandleStreams();
    private long lastObject;

    SoftwareCusolver(GpuBackend gpu, OpenBlas blas) {
        this.gpu = gpu;
        this.blas = blas;
        sparse = new SoftwareSparseSolver(gpu, blas);
        driver = (CusolverDriver) Proxy.newProxyInstance(CusolverDriver.class.getClassLoader(),
            new Class<?>[] {CusolverDriver.class}, (proxy, method, arguments) -> serve(method, arguments));
    }

    /** Answers questions for sizes; the methods of this class serve the others. */
    private Object serve(Method method, Object[] arguments) throws Throwable {
        String name = method.getName();
        if (name.endsWith(SIZE)) {
            return METHODS.contains(name.substring(0, name.length() - SIZE.length())) ? size(arguments)
                : CUSOLVER_STATUS_NOT_SUPPORTED;
        }
        try {
            return method.invoke(name.startsWith(SPARSE) ? sparse : this, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private static int size(Object[] arguments) {
        for (Object argument : arguments) {
            if (argument instanceof Number number && number.longValue() < 0) {
                return CUSOLVER_STATUS_INVALID_VALUE;
            }
        }
        for (Object argument : arguments) {
            if (argument instanceof MemorySegment segment && segment.byteSize() == Integer.BYTES) {
                segment.set(ValueLayout.JAVA_INT, 0, WORK);
            } else if (argument instanceof MemorySegment segment && segment.byteSize() == Long.BYTES) {
                segment.set(ValueLayout.JAVA_LONG, 0, WORK);
            }
        }
        return CUSOLVER_STATUS_SUCCESS;
    }

    @Override
    public CusolverDriver driver() {
        return driver;
    }

    @Override
    public int create(MemorySegment out) {
        streams.add(out);
        return CUSOLVER_STATUS_SUCCESS;
    }

    @Override
    public int destroy(long handle) {
        streams.remove(handle);
        return CUSOLVER_STATUS_SUCCESS;
    }

    @Override
    public int apply(long handle, MemorySegment content, long stream) {
        streams.set(handle, stream);
        return CUSOLVER_STATUS_SUCCESS;
    }

    @Override
    public long handleBytes() {
        return 0;
    }

    @Override
    public MathHandles sparse() {
        return sparse;
    }

    @Override
    public int applySparse(long handle, long stream) {
        return sparse.apply(handle, stream);
    }

    @Override
    public int describe(int type, int fillMode, int diagType, int indexBase, MemorySegment out) {
        return sparse.describe(type, indexBase, out);
    }

    @Override
    public int createParams(MemorySegment content, MemorySegment out) {
        out.set(ValueLayout.JAVA_LONG, 0, ++lastObject);
        return CUSOLVER_STATUS_SUCCESS;
    }

    @Override
    public int createJacobi(boolean isGesvdj, MemorySegment out) {
        out.set(ValueLayout.JAVA_LONG, 0, ++lastObject);
        return CUSOLVER_STATUS_SUCCESS;
    }

    /** LAPACK computes to the precision of the type, and sorts. */
    @Override
    public int configure(boolean isGesvdj, long info, MemorySegment content) {
        return CUSOLVER_STATUS_SUCCESS;
    }

    @Override
    public int destroyJacobi(boolean isGesvdj, long info) {
        return CUSOLVER_STATUS_SUCCESS;
    }

    @Override
    public int cusolverGetVersion(MemorySegment version) {
        version.set(ValueLayout.JAVA_INT, 0, VERSION[0] * 1000 + VERSION[1] * 100 + VERSION[2]);
        return CUSOLVER_STATUS_SUCCESS;
    }

    @Override
    public int cusolverGetProperty(int type_, MemorySegment value) {
        if (type_ < libraryPropertyType_t.MAJOR_VERSION || type_ > libraryPropertyType_t.PATCH_LEVEL) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        value.set(ValueLayout.JAVA_INT, 0, VERSION[type_]);
        return CUSOLVER_STATUS_SUCCESS;
    }

    /** Puts work into the handle's stream, which writes LAPACK's info to the device if there is an address for it. */
    private int issue(MemorySegment handle, long info, IntSupplier work) {
        Runnable body = () -> {
            int result = work.getAsInt();
            if (info != 0) {
                ALL.set(ValueLayout.JAVA_INT_UNALIGNED, info, result);
            }
        };
        return gpu.hostFunction(streams.of(handle.address()), body) == 0 ? CUSOLVER_STATUS_SUCCESS
            : CUSOLVER_STATUS_EXECUTION_FAILED;
    }

    /** A leading dimension that has room for rows. */
    private static boolean holds(long ld, long rows) {
        return rows >= 0 && ld >= Math.max(1, rows);
    }

    private static boolean isFlag(int number) {
        return number == 0 || number == 1;
    }

    static Type type(CusolverForm form) {
        return switch (form) {
            case S -> Type.FLOAT;
            case D -> Type.DOUBLE;
            case C -> Type.COMPLEX;
            default -> Type.DOUBLE_COMPLEX;
        };
    }

    /** The type of the 64-bit functions; null if LAPACK lacks it, or for several types. */
    private static Type type(int first, int... others) {
        for (int other : others) {
            if (other != first) {
                return null;
            }
        }
        Type type = Type.of(first);
        return type == null || type.isShort() ? null : type;
    }

    /** The same for a matrix and a vector of real numbers. */
    private static Type realType(int matrix, int vector, int... others) {
        Type type = type(matrix, others);
        Type real = Type.of(vector);
        return type == null || real != (type.isDouble() ? Type.DOUBLE : Type.FLOAT) ? null : type;
    }

    /** "Not supported" for an unknown type, and for numbers beyond 32 bits, in which LAPACK counts. */
    private static int unfit(Type type, long... numbers) {
        boolean isLong = false;
        for (long number : numbers) {
            isLong |= (int) number != number;
        }
        return type == null || isLong ? CUSOLVER_STATUS_NOT_SUPPORTED : CUSOLVER_STATUS_SUCCESS;
    }

    private Lapack lapack(Type type) {
        return new Lapack(blas, type);
    }

    private int cholesky(String name, MemorySegment handle, Type type, int uplo, int n, long a, int lda, long info) {
        if (!isFlag(uplo) || !holds(lda, n)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        return issue(handle, info, () -> lapack(type).cholesky(name, uplo, n, a, lda));
    }

    @Override
    public int cusolverDnTpotrf(CusolverForm form, MemorySegment handle, int uplo, int n, long A, int lda,
        long Workspace, int Lwork, long devInfo) {
        return cholesky("potrf", handle, type(form), uplo, n, A, lda, devInfo);
    }

    @Override
    public int cusolverDnXpotrf(MemorySegment handle, MemorySegment params, int uplo, long n, int dataTypeA, long A,
        long lda, int computeType, long bufferOnDevice, long workspaceInBytesOnDevice, MemorySegment bufferOnHost,
        long workspaceInBytesOnHost, long info) {
        Type type = type(dataTypeA, computeType);
        int status = unfit(type, n, lda);
        return status != 0 ? status : cholesky("potrf", handle, type, uplo, (int) n, A, (int) lda, info);
    }

    @Override
    public int cusolverDnTpotri(CusolverForm form, MemorySegment handle, int uplo, int n, long A, int lda, long work,
        int lwork, long devInfo) {
        return cholesky("potri", handle, type(form), uplo, n, A, lda, devInfo);
    }

    @Override
    public int cusolverDnTlauum(CusolverForm form, MemorySegment handle, int uplo, int n, long A, int lda, long work,
        int lwork, long devInfo) {
        return cholesky("lauum", handle, type(form), uplo, n, A, lda, devInfo);
    }

    private int potrs(MemorySegment handle, Type type, int uplo, int n, int nrhs, long a, int lda, long b, int ldb,
        long info) {
        if (!isFlag(uplo) || nrhs < 0 || !holds(lda, n) || !holds(ldb, n)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        return issue(handle, info, () -> lapack(type).potrs(uplo, n, nrhs, a, lda, b, ldb));
    }

    @Override
    public int cusolverDnTpotrs(CusolverForm form, MemorySegment handle, int uplo, int n, int nrhs, long A, int lda,
        long B, int ldb, long devInfo) {
        return potrs(handle, type(form), uplo, n, nrhs, A, lda, B, ldb, devInfo);
    }

    @Override
    public int cusolverDnXpotrs(MemorySegment handle, MemorySegment params, int uplo, long n, long nrhs, int dataTypeA,
        long A, long lda, int dataTypeB, long B, long ldb, long info) {
        Type type = type(dataTypeA, dataTypeB);
        int status = unfit(type, n, nrhs, lda, ldb);
        return status != 0 ? status : potrs(handle, type, uplo, (int) n, (int) nrhs, A, (int) lda, B, (int) ldb, info);
    }

    @Override
    public int cusolverDnTpotrfBatched(CusolverForm form, MemorySegment handle, int uplo, int n, long Aarray, int lda,
        long infoArray, int batchSize) {
        if (!isFlag(uplo) || batchSize < 0 || !holds(lda, n)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        Lapack lapack = lapack(type(form));
        return issue(handle, 0, () -> {
            for (long i = 0; i < batchSize; i++) {
                ALL.set(ValueLayout.JAVA_INT_UNALIGNED, infoArray + i * Integer.BYTES,
                    lapack.cholesky("potrf", uplo, n, pointer(Aarray, i), lda));
            }
            return 0;
        });
    }

    @Override
    public int cusolverDnTpotrsBatched(CusolverForm form, MemorySegment handle, int uplo, int n, int nrhs, long A,
        int lda, long B, int ldb, long d_info, int batchSize) {
        if (!isFlag(uplo) || batchSize < 0 || nrhs < 0 || !holds(lda, n) || !holds(ldb, n)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        Lapack lapack = lapack(type(form));
        return issue(handle, d_info, () -> {
            for (long i = 0; i < batchSize; i++) {
                lapack.potrs(uplo, n, nrhs, pointer(A, i), lda, pointer(B, i), ldb);
            }
            return 0;
        });
    }

    private static long pointer(long array, long index) {
        return ALL.get(ValueLayout.JAVA_LONG_UNALIGNED, array + index * Long.BYTES);
    }

    /** Without an array for pivots, cuSOLVER does not exchange rows; LAPACK has no such function. */
    private int getrf(MemorySegment handle, Type type, int m, int n, long a, int lda, long pivots, boolean isWide,
        long info) {
        if (n < 0 || !holds(lda, m)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        return pivots == 0 ? CUSOLVER_STATUS_NOT_SUPPORTED
            : issue(handle, info, () -> lapack(type).getrf(m, n, a, lda, pivots, isWide));
    }

    @Override
    public int cusolverDnTgetrf(CusolverForm form, MemorySegment handle, int m, int n, long A, int lda, long Workspace,
        long devIpiv, long devInfo) {
        return getrf(handle, type(form), m, n, A, lda, devIpiv, false, devInfo);
    }

    @Override
    public int cusolverDnXgetrf(MemorySegment handle, MemorySegment params, long m, long n, int dataTypeA, long A,
        long lda, long ipiv, int computeType, long bufferOnDevice, long workspaceInBytesOnDevice,
        MemorySegment bufferOnHost, long workspaceInBytesOnHost, long info) {
        Type type = type(dataTypeA, computeType);
        int status = unfit(type, m, n, lda);
        return status != 0 ? status : getrf(handle, type, (int) m, (int) n, A, (int) lda, ipiv, true, info);
    }

    private int getrs(MemorySegment handle, Type type, int trans, int n, int nrhs, long a, int lda, long pivots,
        boolean isWide, long b, int ldb, long info) {
        if (trans < 0 || trans > 2 || nrhs < 0 || !holds(lda, n) || !holds(ldb, n)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        return pivots == 0 ? CUSOLVER_STATUS_NOT_SUPPORTED
            : issue(handle, info, () -> lapack(type).getrs(trans, n, nrhs, a, lda, pivots, isWide, b, ldb));
    }

    @Override
    public int cusolverDnTgetrs(CusolverForm form, MemorySegment handle, int trans, int n, int nrhs, long A, int lda,
        long devIpiv, long B, int ldb, long devInfo) {
        return getrs(handle, type(form), trans, n, nrhs, A, lda, devIpiv, false, B, ldb, devInfo);
    }

    @Override
    public int cusolverDnXgetrs(MemorySegment handle, MemorySegment params, int trans, long n, long nrhs, int dataTypeA,
        long A, long lda, long ipiv, int dataTypeB, long B, long ldb, long info) {
        Type type = type(dataTypeA, dataTypeB);
        int status = unfit(type, n, nrhs, lda, ldb);
        return status != 0 ? status : getrs(handle, type, trans, (int) n, (int) nrhs, A, (int) lda, ipiv, true, B,
            (int) ldb, info);
    }

    private int geqrf(MemorySegment handle, Type type, int m, int n, long a, int lda, long tau, long info) {
        if (n < 0 || !holds(lda, m)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        return issue(handle, info, () -> lapack(type).geqrf(m, n, a, lda, tau));
    }

    @Override
    public int cusolverDnTgeqrf(CusolverForm form, MemorySegment handle, int m, int n, long A, int lda, long TAU,
        long Workspace, int Lwork, long devInfo) {
        return geqrf(handle, type(form), m, n, A, lda, TAU, devInfo);
    }

    @Override
    public int cusolverDnXgeqrf(MemorySegment handle, MemorySegment params, long m, long n, int dataTypeA, long A,
        long lda, int dataTypeTau, long tau, int computeType, long bufferOnDevice, long workspaceInBytesOnDevice,
        MemorySegment bufferOnHost, long workspaceInBytesOnHost, long info) {
        Type type = type(dataTypeA, dataTypeTau, computeType);
        int status = unfit(type, m, n, lda);
        return status != 0 ? status : geqrf(handle, type, (int) m, (int) n, A, (int) lda, tau, info);
    }

    @Override
    public int cusolverDnTorgqr(CusolverForm form, MemorySegment handle, int m, int n, int k, long A, int lda, long tau,
        long work, int lwork, long info) {
        if (n < 0 || n > m || k < 0 || k > n || !holds(lda, m)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        return issue(handle, info, () -> lapack(type(form)).orgqr(m, n, k, A, lda, tau));
    }

    @Override
    public int cusolverDnTungqr(CusolverForm form, MemorySegment handle, int m, int n, int k, long A, int lda, long tau,
        long work, int lwork, long info) {
        return cusolverDnTorgqr(form, handle, m, n, k, A, lda, tau, work, lwork, info);
    }

    @Override
    public int cusolverDnTormqr(CusolverForm form, MemorySegment handle, int side, int trans, int m, int n, int k,
        long A, int lda, long tau, long C, int ldc, long work, int lwork, long devInfo) {
        if (!isFlag(side) || trans < 0 || trans > 2 || n < 0 || k < 0 || k > (side == 0 ? m : n)
            || !holds(lda, side == 0 ? m : n) || !holds(ldc, m) || type(form).isComplex() && trans == 1) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        int transpose = type(form).isComplex() ? trans : Math.min(trans, 1);
        return issue(handle, devInfo, () -> lapack(type(form)).ormqr(side, transpose, m, n, k, A, lda, tau, C, ldc));
    }

    @Override
    public int cusolverDnTunmqr(CusolverForm form, MemorySegment handle, int side, int trans, int m, int n, int k,
        long A, int lda, long tau, long C, int ldc, long work, int lwork, long devInfo) {
        return cusolverDnTormqr(form, handle, side, trans, m, n, k, A, lda, tau, C, ldc, work, lwork, devInfo);
    }

    /** Eigenvalues of one matrix, or of several that lie behind each other and have an info each. */
    private int syevd(MemorySegment handle, Type type, int jobz, int uplo, int n, long a, int lda, long w, long info,
        int batch) {
        if (!isFlag(jobz) || !isFlag(uplo) || batch < 0 || !holds(lda, n)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        long matrix = (long) lda * n * type.bytes();
        long values = (long) n * (type.isDouble() ? Double.BYTES : Float.BYTES);
        return issue(handle, 0, () -> {
            for (long i = 0; i < batch; i++) {
                int result = lapack(type).syevd(jobz, uplo, n, a + i * matrix, lda, w + i * values);
                if (info != 0) {
                    ALL.set(ValueLayout.JAVA_INT_UNALIGNED, info + i * Integer.BYTES, result);
                }
            }
            return 0;
        });
    }

    @Override
    public int cusolverDnTsyevd(CusolverForm form, MemorySegment handle, int jobz, int uplo, int n, long A, int lda,
        long W, long work, int lwork, long info) {
        return syevd(handle, type(form), jobz, uplo, n, A, lda, W, info, 1);
    }

    @Override
    public int cusolverDnTheevd(CusolverForm form, MemorySegment handle, int jobz, int uplo, int n, long A, int lda,
        long W, long work, int lwork, long info) {
        return syevd(handle, type(form), jobz, uplo, n, A, lda, W, info, 1);
    }

    @Override
    public int cusolverDnXsyevd(MemorySegment handle, MemorySegment params, int jobz, int uplo, long n, int dataTypeA,
        long A, long lda, int dataTypeW, long W, int computeType, long bufferOnDevice, long workspaceInBytesOnDevice,
        MemorySegment bufferOnHost, long workspaceInBytesOnHost, long info) {
        Type type = realType(dataTypeA, dataTypeW, computeType);
        int status = unfit(type, n, lda);
        return status != 0 ? status : syevd(handle, type, jobz, uplo, (int) n, A, (int) lda, W, info, 1);
    }

    @Override
    public int cusolverDnXsyevBatched(MemorySegment handle, MemorySegment params, int jobz, int uplo, long n,
        int dataTypeA, long A, long lda, int dataTypeW, long W, int computeType, long bufferOnDevice,
        long workspaceInBytesOnDevice, MemorySegment bufferOnHost, long workspaceInBytesOnHost, long info,
        long batchSize) {
        Type type = realType(dataTypeA, dataTypeW, computeType);
        int status = unfit(type, n, lda, batchSize);
        return status != 0 ? status : syevd(handle, type, jobz, uplo, (int) n, A, (int) lda, W, info, (int) batchSize);
    }

    @Override
    public int cusolverDnTsyevj(CusolverForm form, MemorySegment handle, int jobz, int uplo, int n, long A, int lda,
        long W, long work, int lwork, long info, MemorySegment params) {
        return syevd(handle, type(form), jobz, uplo, n, A, lda, W, info, 1);
    }

    @Override
    public int cusolverDnTheevj(CusolverForm form, MemorySegment handle, int jobz, int uplo, int n, long A, int lda,
        long W, long work, int lwork, long info, MemorySegment params) {
        return syevd(handle, type(form), jobz, uplo, n, A, lda, W, info, 1);
    }

    @Override
    public int cusolverDnTsyevjBatched(CusolverForm form, MemorySegment handle, int jobz, int uplo, int n, long A,
        int lda, long W, long work, int lwork, long info, MemorySegment params, int batchSize) {
        return syevd(handle, type(form), jobz, uplo, n, A, lda, W, info, batchSize);
    }

    @Override
    public int cusolverDnTheevjBatched(CusolverForm form, MemorySegment handle, int jobz, int uplo, int n, long A,
        int lda, long W, long work, int lwork, long info, MemorySegment params, int batchSize) {
        return syevd(handle, type(form), jobz, uplo, n, A, lda, W, info, batchSize);
    }

    @Override
    public int cusolverDnTsygvd(CusolverForm form, MemorySegment handle, int itype, int jobz, int uplo, int n, long A,
        int lda, long B, int ldb, long W, long work, int lwork, long info) {
        if (itype < 1 || itype > 3 || !isFlag(jobz) || !isFlag(uplo) || !holds(lda, n) || !holds(ldb, n)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        return issue(handle, info, () -> lapack(type(form)).sygvd(itype, jobz, uplo, n, A, lda, B, ldb, W));
    }

    @Override
    public int cusolverDnThegvd(CusolverForm form, MemorySegment handle, int itype, int jobz, int uplo, int n, long A,
        int lda, long B, int ldb, long W, long work, int lwork, long info) {
        return cusolverDnTsygvd(form, handle, itype, jobz, uplo, n, A, lda, B, ldb, W, work, lwork, info);
    }

    /** cuSOLVER's function is for matrices with at least as many rows as columns. */
    private int gesvd(MemorySegment handle, Type type, int jobu, int jobvt, int m, int n, long a, int lda, long s,
        long u, int ldu, long vt, int ldvt, long info) {
        boolean hasU = jobu == 'A' || jobu == 'S';
        boolean hasV = jobvt == 'A' || jobvt == 'S';
        if ("ASON".indexOf(jobu) < 0 || "ASON".indexOf(jobvt) < 0 || jobu == 'O' && jobvt == 'O' || n < 0 || n > m
            || !holds(lda, m) || hasU && !holds(ldu, m) || hasV && !holds(ldvt, n)) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        return issue(handle, info, () -> lapack(type).gesvd(jobu, jobvt, m, n, a, lda, s, u, Math.max(1, ldu), vt,
            Math.max(1, ldvt)));
    }

    @Override
    public int cusolverDnTgesvd(CusolverForm form, MemorySegment handle, byte jobu, byte jobvt, int m, int n, long A,
        int lda, long S, long U, int ldu, long VT, int ldvt, long work, int lwork, long rwork, long info) {
        return gesvd(handle, type(form), jobu, jobvt, m, n, A, lda, S, U, ldu, VT, ldvt, info);
    }

    @Override
    public int cusolverDnXgesvd(MemorySegment handle, MemorySegment params, byte jobu, byte jobvt, long m, long n,
        int dataTypeA, long A, long lda, int dataTypeS, long S, int dataTypeU, long U, long ldu, int dataTypeVT,
        long VT, long ldvt, int computeType, long bufferOnDevice, long workspaceInBytesOnDevice,
        MemorySegment bufferOnHost, long workspaceInBytesOnHost, long info) {
        Type type = realType(dataTypeA, dataTypeS, dataTypeU, dataTypeVT, computeType);
        int status = unfit(type, m, n, lda, ldu, ldvt);
        return status != 0 ? status : gesvd(handle, type, jobu, jobvt, (int) m, (int) n, A, (int) lda, S, U, (int) ldu,
            VT, (int) ldvt, info);
    }

    /** Singular values of one matrix, or of several that lie behind each other and have an info each. */
    private int gesvdj(MemorySegment handle, Type type, int jobz, boolean isEconomic, int m, int n, long a, int lda,
        long s, long u, int ldu, long v, int ldv, long info, int batch) {
        if (!isFlag(jobz) || batch < 0 || n < 0 || !holds(lda, m) || jobz != 0 && (!holds(ldu, m) || !holds(ldv, n))) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        long bytes = type.bytes();
        long values = (long) Math.min(m, n) * (type.isDouble() ? Double.BYTES : Float.BYTES);
        return issue(handle, 0, () -> {
            for (long i = 0; i < batch; i++) {
                int result = lapack(type).gesvdj(jobz, isEconomic, m, n, a + i * lda * n * bytes, lda, s + i * values,
                    u + i * ldu * m * bytes, ldu, v + i * ldv * n * bytes, ldv);
                if (info != 0) {
                    ALL.set(ValueLayout.JAVA_INT_UNALIGNED, info + i * Integer.BYTES, result);
                }
            }
            return 0;
        });
    }

    @Override
    public int cusolverDnTgesvdj(CusolverForm form, MemorySegment handle, int jobz, int econ, int m, int n, long A,
        int lda, long S, long U, int ldu, long V, int ldv, long work, int lwork, long info, MemorySegment params) {
        return isFlag(econ) ? gesvdj(handle, type(form), jobz, econ != 0, m, n, A, lda, S, U, ldu, V, ldv, info, 1)
            : CUSOLVER_STATUS_INVALID_VALUE;
    }

    @Override
    public int cusolverDnTgesvdjBatched(CusolverForm form, MemorySegment handle, int jobz, int m, int n, long A,
        int lda, long S, long U, int ldu, long V, int ldv, long work, int lwork, long info, MemorySegment params,
        int batchSize) {
        return gesvdj(handle, type(form), jobz, false, m, n, A, lda, S, U, ldu, V, ldv, info, batchSize);
    }
}
