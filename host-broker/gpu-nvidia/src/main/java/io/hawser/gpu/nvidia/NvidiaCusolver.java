package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.CusolverBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathHandles;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.generated.cusolver.CusolverDriver;
import io.hawser.cuda.generated.cusolver.CusolverNative;
import io.hawser.cuda.generated.cusolver.HwsSolverGiven;
import io.hawser.cuda.generated.cusolver.HwsSolverHandle;
import io.hawser.cuda.generated.cusolver.HwsSolverJacobi;
import io.hawser.cuda.generated.cusolver.HwsSolverParams;
import io.hawser.cuda.generated.cusolver.cusolverStatus_t;
import io.hawser.cuda.generated.cusparse.CusparseNative;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** NVIDIA's cuSOLVER. Session thread. */
final class NvidiaCusolver implements CusolverBackend {
    /** An assumption: a handle has one of cuBLAS, with its workspace on a GPU of compute capability 9.0. */
    private static final long HANDLE_BYTES = 32 << 20;
    private static final int FUNCTIONS = 3; // of cusolverDnFunction_t

    private final CusolverNative library;
    private final CusparseNative cusparse;
    private final NvidiaSparseSolver driver;

    NvidiaCusolver(GpuBackend gpu, NativeLibrary library, NativeLibrary cusparse) {
        this.library = new CusolverNative(library);
        this.cusparse = new CusparseNative(cusparse);
        driver = new NvidiaSparseSolver(gpu, library, this.library);
    }

    @Override
    public CusolverDriver driver() {
        return driver;
    }

    @Override
    public int create(MemorySegment out) {
        return library.cusolverDnCreate(out);
    }

    @Override
    public int destroy(long handle) {
        return library.cusolverDnDestroy(handle);
    }

    @Override
    public long handleBytes() {
        return HANDLE_BYTES;
    }

    @Override
    public MathHandles sparse() {
        return driver;
    }

    @Override
    public int applySparse(long handle, long stream) {
        return driver.apply(handle, stream);
    }

    /** All values are known, so only the memory can lack. */
    @Override
    public int describe(int type, int fillMode, int diagType, int indexBase, MemorySegment out) {
        if (NvidiaCusparse.describe(cusparse, type, fillMode, diagType, indexBase, out) != 0) {
            return cusolverStatus_t.CUSOLVER_STATUS_ALLOC_FAILED;
        }
        driver.setBase(out.get(ValueLayout.JAVA_LONG, 0), indexBase);
        return 0;
    }

    /** A mode of 0 has never been set, so a library that lacks the mode works all the same. */
    @Override
    public int apply(long handle, MemorySegment content, long stream) {
        int status = library.cusolverDnSetStream(handle, stream);
        int deterministic = number(content, HwsSolverHandle.DETERMINISTIC_MODE_OFFSET);
        if (status == 0 && deterministic != 0) {
            status = library.cusolverDnSetDeterministicMode(handle, deterministic);
        }
        int math = number(content, HwsSolverHandle.MATH_MODE_OFFSET);
        if (status == 0 && math != 0) {
            status = library.cusolverDnSetMathMode(handle, math);
        }
        int strategy = number(content, HwsSolverHandle.EMULATION_STRATEGY_OFFSET);
        return status != 0 || strategy == 0 ? status : library.cusolverDnSetEmulationStrategy(handle, strategy);
    }

    @Override
    public int createParams(MemorySegment content, MemorySegment out) {
        int status = library.cusolverDnCreateParams(out);
        for (int function = 0; status == 0 && function < FUNCTIONS; function++) {
            int algorithm = number(content, HwsSolverParams.ALGORITHMS_OFFSET + (long) function * Integer.BYTES);
            if (algorithm >= 0) {
                long params = out.get(ValueLayout.JAVA_LONG, 0);
                status = library.cusolverDnSetAdvOptions(params, function, algorithm);
                if (status != 0) {
                    library.cusolverDnDestroyParams(params);
                }
            }
        }
        return status;
    }

    @Override
    public int createJacobi(boolean isGesvdj, MemorySegment out) {
        return isGesvdj ? library.cusolverDnCreateGesvdjInfo(out) : library.cusolverDnCreateSyevjInfo(out);
    }

    @Override
    public int configure(boolean isGesvdj, long info, MemorySegment content) {
        int given = number(content, HwsSolverJacobi.GIVEN_OFFSET);
        double tolerance = content.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, HwsSolverJacobi.TOLERANCE_OFFSET);
        int sweeps = number(content, HwsSolverJacobi.MAX_SWEEPS_OFFSET);
        int isSorted = number(content, HwsSolverJacobi.IS_SORTED_OFFSET);
        int status = 0;
        if ((given & HwsSolverGiven.HWS_SOLVER_TOLERANCE) != 0) {
            status = isGesvdj ? library.cusolverDnXgesvdjSetTolerance(info, tolerance)
                : library.cusolverDnXsyevjSetTolerance(info, tolerance);
        }
        if (status == 0 && (given & HwsSolverGiven.HWS_SOLVER_SWEEPS) != 0) {
            status = isGesvdj ? library.cusolverDnXgesvdjSetMaxSweeps(info, sweeps)
                : library.cusolverDnXsyevjSetMaxSweeps(info, sweeps);
        }
        if (status == 0 && (given & HwsSolverGiven.HWS_SOLVER_SORT) != 0) {
            status = isGesvdj ? library.cusolverDnXgesvdjSetSortEig(info, isSorted)
                : library.cusolverDnXsyevjSetSortEig(info, isSorted);
        }
        return status;
    }

    @Override
    public int destroyJacobi(boolean isGesvdj, long info) {
        return isGesvdj ? library.cusolverDnDestroyGesvdjInfo(info) : library.cusolverDnDestroySyevjInfo(info);
    }

    private static int number(MemorySegment content, long offset) {
        return content.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }
}
