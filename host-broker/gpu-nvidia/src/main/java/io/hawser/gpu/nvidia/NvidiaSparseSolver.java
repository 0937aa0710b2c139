package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_ALLOC_FAILED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_EXECUTION_FAILED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_INVALID_VALUE;

import io.hawser.cuda.backend.CsrStructure;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathHandles;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.CudaNative;
import io.hawser.cuda.generated.cusolver.CusolverForeign;
import io.hawser.cuda.generated.cusolver.CusolverForm;
import io.hawser.cuda.generated.cusolver.CusolverNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;

/**
 * The functions of NVIDIA's cuSOLVER. Those of sparse systems order the rows on the host's processor. There the library
 * would follow a guest's wrong row or column out of its own memory. So it receives a checked copy of rows and columns.
 * The copy lies in the guest's context, so a kernel that guesses its address can still change it. That harms only the
 * guest's own worker, which the jail confines. Session thread.
 */
final class NvidiaSparseSolver extends CusolverForeign implements MathHandles {
    /** An assumption: the library documents no number. */
    private static final long HANDLE_BYTES = 8 << 20;

    private final GpuBackend gpu;
    private final CusolverNative library;
    private final Map<Long, Long> streams = new HashMap<>(); // of handles
    private final Map<Long, Integer> bases = new HashMap<>(); // of descriptions of matrices

    /** Calls the library with the addresses of checked rows and columns. */
    private interface Solve {
        int call(long offsets, long columns);
    }

    NvidiaSparseSolver(GpuBackend gpu, NativeLibrary functions, CusolverNative library) {
        super(functions);
        this.gpu = gpu;
        this.library = library;
    }

    @Override
    public int create(MemorySegment out) {
        int status = library.cusolverSpCreate(out);
        if (status == 0) {
            streams.put(out.get(ValueLayout.JAVA_LONG, 0), 0L);
        }
        return status;
    }

    @Override
    public int destroy(long handle) {
        streams.remove(handle);
        return library.cusolverSpDestroy(handle);
    }

    @Override
    public long handleBytes() {
        return HANDLE_BYTES;
    }

    int apply(long handle, long stream) {
        int status = library.cusolverSpSetStream(handle, stream);
        if (status == 0) {
            streams.put(handle, stream);
        }
        return status;
    }

    /** Tells where the rows and columns of matrices with this description begin. */
    void setBase(long description, int base) {
        bases.put(description, base);
    }

    private int check(MemorySegment handle, int m, int nnz, MemorySegment description, long offsets, long columns,
        Solve solve) {
        if (m <= 0 || nnz <= 0) {
            return CUSOLVER_STATUS_INVALID_VALUE;
        }
        long offsetBytes = (m + 1L) * Integer.BYTES;
        long columnBytes = (long) nnz * Integer.BYTES;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            if (gpu.driver().cuMemAlloc_v2(out, offsetBytes + columnBytes) != 0) {
                return CUSOLVER_STATUS_ALLOC_FAILED;
            }
            long copy = out.get(ValueLayout.JAVA_LONG, 0);
            try {
                long stream = streams.get(handle.address());
                MemorySegment structure = arena.allocate(offsetBytes + columnBytes, Integer.BYTES);
                int result = gpu.driver().cuMemcpyDtoDAsync_v2(copy, offsets, offsetBytes, stream);
                result = result != 0 ? result
                    : gpu.driver().cuMemcpyDtoDAsync_v2(copy + offsetBytes, columns, columnBytes, stream);
                result = result != 0 ? result : gpu.copyDtoH(structure, copy, stream);
                result = result != 0 ? result : CudaNative.cuStreamSynchronize(stream);
                if (result != 0) {
                    return CUSOLVER_STATUS_EXECUTION_FAILED;
                }
                CsrStructure csr = new CsrStructure(structure.asSlice(0, offsetBytes), structure.asSlice(offsetBytes),
                    bases.get(description.address()));
                return csr.isWhole() ? solve.call(copy, copy + offsetBytes) : CUSOLVER_STATUS_INVALID_VALUE;
            } finally {
                gpu.driver().cuMemFree_v2(copy);
            }
        }
    }

    @Override
    public int cusolverSpTcsrlsvqr(CusolverForm form, MemorySegment handle, int m, int nnz, MemorySegment descrA,
        long csrVal, long csrRowPtr, long csrColInd, long b, double tol, int reorder, long x,
        MemorySegment singularity) {
        return check(handle, m, nnz, descrA, csrRowPtr, csrColInd, (offsets, columns) -> super.cusolverSpTcsrlsvqr(form,
            handle, m, nnz, descrA, csrVal, offsets, columns, b, tol, reorder, x, singularity));
    }

    @Override
    public int cusolverSpTcsrlsvchol(CusolverForm form, MemorySegment handle, int m, int nnz, MemorySegment descrA,
        long csrVal, long csrRowPtr, long csrColInd, long b, double tol, int reorder, long x,
        MemorySegment singularity) {
        return check(handle, m, nnz, descrA, csrRowPtr, csrColInd, (offsets, columns) -> super.cusolverSpTcsrlsvchol(
            form, handle, m, nnz, descrA, csrVal, offsets, columns, b, tol, reorder, x, singularity));
    }

    @Override
    public int cusolverSpTcsreigvsi(CusolverForm form, MemorySegment handle, int m, int nnz, MemorySegment descrA,
        long csrValA, long csrRowPtrA, long csrColIndA, double mu0, long x0, int maxite, double eps, long mu, long x) {
        return check(handle, m, nnz, descrA, csrRowPtrA, csrColIndA, (offsets, columns) -> super.cusolverSpTcsreigvsi(
            form, handle, m, nnz, descrA, csrValA, offsets, columns, mu0, x0, maxite, eps, mu, x));
    }

    @Override
    public int cusolverSpCcsreigvsi(MemorySegment handle, int m, int nnz, MemorySegment descrA, long csrValA,
        long csrRowPtrA, long csrColIndA, MemorySegment mu0, long x0, int maxite, float eps, long mu, long x) {
        return check(handle, m, nnz, descrA, csrRowPtrA, csrColIndA, (offsets, columns) -> super.cusolverSpCcsreigvsi(
            handle, m, nnz, descrA, csrValA, offsets, columns, mu0, x0, maxite, eps, mu, x));
    }

    @Override
    public int cusolverSpZcsreigvsi(MemorySegment handle, int m, int nnz, MemorySegment descrA, long csrValA,
        long csrRowPtrA, long csrColIndA, MemorySegment mu0, long x0, int maxite, double eps, long mu, long x) {
        return check(handle, m, nnz, descrA, csrRowPtrA, csrColIndA, (offsets, columns) -> super.cusolverSpZcsreigvsi(
            handle, m, nnz, descrA, csrValA, offsets, columns, mu0, x0, maxite, eps, mu, x));
    }
}
