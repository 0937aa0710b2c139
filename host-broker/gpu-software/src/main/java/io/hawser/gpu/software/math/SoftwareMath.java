package io.hawser.gpu.software.math;

import io.hawser.cuda.backend.CublasBackend;
import io.hawser.cuda.backend.CublasLtBackend;
import io.hawser.cuda.backend.CudnnBackend;
import io.hawser.cuda.backend.CufftBackend;
import io.hawser.cuda.backend.CurandBackend;
import io.hawser.cuda.backend.CusolverBackend;
import io.hawser.cuda.backend.CusparseBackend;
import io.hawser.cuda.backend.CusparseLtBackend;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.backend.NcclBackend;
import io.hawser.gpu.software.dnn.SoftwareCudnn;
import io.hawser.gpu.software.nccl.SoftwareNccl;

/** The math libraries of the software GPU. */
public final class SoftwareMath implements MathProvider {
    @Override
    public String backend() {
        return "software";
    }

    @Override
    public CublasBackend cublas(GpuBackend gpu) {
        NativeLibrary library = MathProvider.load("libopenblas.so.0");
        return library == null ? null : new SoftwareCublas(gpu, new OpenBlas(library));
    }

    @Override
    public CublasLtBackend cublasLt(GpuBackend gpu) {
        NativeLibrary library = MathProvider.load("libopenblas.so.0");
        return library == null ? null : new SoftwareCublasLt(gpu, new OpenBlas(library));
    }

    /** Needs no library. */
    @Override
    public CufftBackend cufft(GpuBackend gpu) {
        return new SoftwareCufft(gpu);
    }

    /** Needs no library. */
    @Override
    public CudnnBackend cudnn(GpuBackend gpu) {
        return new SoftwareCudnn(gpu);
    }

    @Override
    public CusolverBackend cusolver(GpuBackend gpu) {
        NativeLibrary library = MathProvider.load("libopenblas.so.0");
        OpenBlas blas = library == null ? null : new OpenBlas(library);
        return blas == null || !Lapack.isIn(blas) ? null : new SoftwareCusolver(gpu, blas);
    }

    /** Needs no library. */
    @Override
    public CusparseBackend cusparse(GpuBackend gpu) {
        return new SoftwareCusparse(gpu);
    }

    /** Needs no library. */
    @Override
    public CurandBackend curand(GpuBackend gpu) {
        return new SoftwareCurand(gpu);
    }

    /** Needs no library. */
    @Override
    public NcclBackend nccl(GpuBackend gpu) {
        return new SoftwareNccl(gpu, NcclBackend.mayCommunicate());
    }

    @Override
    public CusparseLtBackend cusparseLt(GpuBackend gpu) {
        System.getLogger(SoftwareMath.class.getName()).log(System.Logger.Level.WARNING,
            "the software GPU has no cuSPARSELt: its calls are not supported");
        return null;
    }

    @Override
    public void loadAhead() {
        if (NcclBackend.mayCommunicate()) {
            SoftwareNccl.loadAhead();
        }
    }
}
