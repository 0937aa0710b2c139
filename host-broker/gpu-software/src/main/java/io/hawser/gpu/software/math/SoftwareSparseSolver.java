package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_EXECUTION_FAILED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_SUCCESS;

import io.hawser.cuda.backend.CsrStructure;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathHandles;
import io.hawser.cuda.generated.cusolver.CusolverDriver;
import io.hawser.cuda.generated.cusolver.CusolverForm;
import io.hawser.cuda.generated.cusparse.cusparseMatrixType_t;
import io.hawser.gpu.software.work.AwaitedWork;
import io.hawser.gpu.software.work.HandleStreams;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.OptionalLong;
import java.util.function.ToIntBiFunction;
import java.util.function.ToIntFunction;

/**
 * The functions of cuSOLVER for sparse systems, by LAPACK's for dense ones: the order of rows is the program's. Session
 * thread; the work runs on the device's threads.
 */
final class SoftwareSparseSolver implements CusolverDriver, MathHandles {
    private static final System.Logger LOG = System.getLogger(SoftwareSparseSolver.class.getName());
    /** The dense matrix then takes 64 MiB at most. */
    private static final int MOST_ROWS = 2048;
    /** A program's number would keep a thread of the device busy for days. */
    private static final int MOST_STEPS = 10_000;
    private static final int REORDERS = 4; // none, and three methods
    private static final int BASE = 1; // of a description's number; the rest is its type, counted from 1
    private static final int TYPE_SHIFT = 1;
    private static final int WRONG = Integer.MIN_VALUE; // no position
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final GpuBackend gpu;
    private final OpenBlas blas;
    private final HandleStreams streams = new HandleStreams();

    /** A function of a system. Returns a position, or another number that is not {@link #WRONG}. */
    private interface Work {
        int run(SparseSystem system);
    }

    SoftwareSparseSolver(GpuBackend gpu, OpenBlas blas) {
        this.gpu = gpu;
        this.blas = blas;
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
    public long handleBytes() {
        return 0;
    }

    int apply(long handle, long stream) {
        streams.set(handle, stream);
        return CUSOLVER_STATUS_SUCCESS;
    }

    int describe(int type, int indexBase, MemorySegment out) {
        out.set(ValueLayout.JAVA_LONG, 0, type + 1 << TYPE_SHIFT | indexBase);
        return CUSOLVER_STATUS_SUCCESS;
    }

    private int solve(Type type, MemorySegment handle, int m, int nnz, MemorySegment description, long[] addresses,
        MemorySegment singularity, Work work) {
        if (m <= 0 || nnz <= 0) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        long described = description.address();
        if ((described >> TYPE_SHIFT) - 1 != cusparseMatrixType_t.CUSPARSE_MATRIX_TYPE_GENERAL) {
            return CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
        }
        if (m > MOST_ROWS) {
            LOG.log(System.Logger.Level.WARNING, "cuSOLVER: a sparse system has at most {0} rows, not {1}", MOST_ROWS,
                m);
            return CUSOLVER_STATUS_NOT_SUPPORTED;
        }
        OptionalLong found = AwaitedWork.run(gpu, streams.of(handle.address()), "cuSOLVER", () -> {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment values = copied(arena, addresses[0], (long) nnz * type.bytes());
                CsrStructure structure = new CsrStructure(copied(arena, addresses[1], (m + 1L) * Integer.BYTES),
                    copied(arena, addresses[2], (long) nnz * Integer.BYTES), (int) described & BASE);
                return structure.isWhole() ? work.run(new SparseSystem(new Lapack(blas, type), type, structure, values))
                    : WRONG;
            }
        });
        if (found.isEmpty()) {
            return CUSOLVER_STATUS_EXECUTION_FAILED;
        }
        if (found.getAsLong() == WRONG) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        if (singularity != null) {
            singularity.set(ValueLayout.JAVA_INT, 0, (int) found.getAsLong());
        }
        return CUSOLVER_STATUS_SUCCESS;
    }

    /** A kernel of the guest may change device memory at any time. */
    private static MemorySegment copied(Arena arena, long address, long bytes) {
        // SAFETY: the worker has checked that these bytes lie in the session's memory.
        return arena.allocate(bytes, Type.MAX_BYTES).copyFrom(ALL.asSlice(address, bytes));
    }

    /** Runs work on a copy of a vector, and writes the copy to the device if there is no singularity. */
    private static int withVector(Type type, int m, long from, long to,
        ToIntFunction<MemorySegment> work) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment vector = copied(arena, from, (long) m * type.bytes());
            int singularity = work.applyAsInt(vector);
            if (singularity < 0) {
                MemorySegment.copy(vector, 0, ALL, to, vector.byteSize());
            }
            return singularity;
        }
    }

    /** Solves a system with the right side b. */
    private int solve(CusolverForm form, MemorySegment handle, int m, int nnz, MemorySegment description,
        long[] addresses, long b, int reorder, long x, MemorySegment singularity,
        ToIntBiFunction<SparseSystem, MemorySegment> solution) {
        if (reorder < 0 || reorder >= REORDERS) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        Type type = SoftwareCusolver.type(form);
        return solve(type, handle, m, nnz, description, addresses, singularity,
            system -> withVector(type, m, b, x, vector -> solution.applyAsInt(system, vector)));
    }

    @Override
    public int cusolverSpTcsrlsvqr(CusolverForm form, MemorySegment handle, int m, int nnz, MemorySegment descrA,
        long csrVal, long csrRowPtr, long csrColInd, long b, double tol, int reorder, long x,
        MemorySegment singularity) {
        return solve(form, handle, m, nnz, descrA, new long[] {csrVal, csrRowPtr, csrColInd}, b, reorder, x,
            singularity, (system, vector) -> system.solveByQr(vector, tol));
    }

    @Override
    public int cusolverSpTcsrlsvchol(CusolverForm form, MemorySegment handle, int m, int nnz, MemorySegment descrA,
        long csrVal, long csrRowPtr, long csrColInd, long b, double tol, int reorder, long x,
        MemorySegment singularity) {
        return solve(form, handle, m, nnz, descrA, new long[] {csrVal, csrRowPtr, csrColInd}, b, reorder, x,
            singularity, (system, vector) -> system.solveByCholesky(vector, tol));
    }

    private int eigenvalue(Type type, MemorySegment handle, int m, int nnz, MemorySegment description,
        long[] addresses, double[] shift, long first, int steps, double eps, long mu, long x) {
        return solve(type, handle, m, nnz, description, addresses, null,
            system -> withVector(type, m, first, x, vector -> {
                system.findEigenvalue(shift, vector, Math.min(steps, MOST_STEPS), eps, ALL.asSlice(mu, type.bytes()));
                return -1;
            }));
    }

    @Override
    public int cusolverSpTcsreigvsi(CusolverForm form, MemorySegment handle, int m, int nnz, MemorySegment descrA,
        long csrValA, long csrRowPtrA, long csrColIndA, double mu0, long x0, int maxite, double eps, long mu, long x) {
        return eigenvalue(SoftwareCusolver.type(form), handle, m, nnz, descrA, new long[] {csrValA, csrRowPtrA,
            csrColIndA}, new double[] {mu0, 0}, x0, maxite, eps, mu, x);
    }

    private static double[] shift(Type type, MemorySegment number) {
        return new double[] {SparseMatrix.number(number, 0, type.isDouble()), SparseMatrix.number(number, 1,
            type.isDouble())};
    }

    @Override
    public int cusolverSpCcsreigvsi(MemorySegment handle, int m, int nnz, MemorySegment descrA, long csrValA,
        long csrRowPtrA, long csrColIndA, MemorySegment mu0, long x0, int maxite, float eps, long mu, long x) {
        return eigenvalue(Type.COMPLEX, handle, m, nnz, descrA, new long[] {csrValA, csrRowPtrA, csrColIndA},
            shift(Type.COMPLEX, mu0), x0, maxite, eps, mu, x);
    }

    @Override
    public int cusolverSpZcsreigvsi(MemorySegment handle, int m, int nnz, MemorySegment descrA, long csrValA,
        long csrRowPtrA, long csrColIndA, MemorySegment mu0, long x0, int maxite, double eps, long mu, long x) {
        return eigenvalue(Type.DOUBLE_COMPLEX, handle, m, nnz, descrA, new long[] {csrValA, csrRowPtrA, csrColIndA},
            shift(Type.DOUBLE_COMPLEX, mu0), x0, maxite, eps, mu, x);
    }
}
