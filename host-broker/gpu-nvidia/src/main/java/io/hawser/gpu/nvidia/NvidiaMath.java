package io.hawser.gpu.nvidia;

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

/** NVIDIA's math libraries. */
public final class NvidiaMath implements MathProvider {
    @Override
    public String backend() {
        return "nvidia";
    }

    @Override
    public CublasBackend cublas(GpuBackend gpu) {
        // cuBLAS needs cublasLt, which the dynamic linker then finds by its soname, wherever it would search.
        NativeLibrary needed = MathProvider.load("libcublasLt.so.13", "libcublasLt.so.12");
        NativeLibrary library = needed == null ? null : MathProvider.load("libcublas.so.13", "libcublas.so.12");
        return library == null ? null : new NvidiaCublas(library);
    }

    @Override
    public CublasLtBackend cublasLt(GpuBackend gpu) {
        NativeLibrary library = MathProvider.load("libcublasLt.so.13", "libcublasLt.so.12");
        return library == null ? null : new NvidiaCublasLt(library);
    }

    @Override
    public CufftBackend cufft(GpuBackend gpu) {
        NativeLibrary library = MathProvider.load("libcufft.so.12", "libcufft.so.11");
        return library == null ? null : new NvidiaCufft(library);
    }

    @Override
    public CudnnBackend cudnn(GpuBackend gpu) {
        // cuDNN opens these by their sonames, in folders where a jailed process finds nothing. Some of its engines need
        // the compiler and its built-in part, so cuDNN reports those as not supported where one is missing.
        NativeLibrary needed = MathProvider.load("libcublasLt.so.13", "libcublasLt.so.12");
        MathProvider.load("libcublas.so.13", "libcublas.so.12");
        MathProvider.loadAll("libnvrtc-builtins.so.");
        MathProvider.load("libnvrtc.so.13", "libnvrtc.so.12");
        NativeLibrary library = needed == null ? null : MathProvider.load("libcudnn.so.9");
        return library == null ? null : new NvidiaCudnn(library);
    }

    @Override
    public CusolverBackend cusolver(GpuBackend gpu) {
        // cuSOLVER needs these, and cuSPARSE needs the linker; each finds the ones before it by their sonames.
        MathProvider.load("libnvJitLink.so.13", "libnvJitLink.so.12");
        boolean hasAll = MathProvider.load("libcublasLt.so.13", "libcublasLt.so.12") != null
            && MathProvider.load("libcublas.so.13", "libcublas.so.12") != null;
        NativeLibrary cusparse = hasAll ? MathProvider.load("libcusparse.so.12") : null;
        NativeLibrary library = cusparse == null ? null : MathProvider.load("libcusolver.so.12", "libcusolver.so.11");
        return library == null ? null : new NvidiaCusolver(gpu, library, cusparse);
    }

    @Override
    public CusparseBackend cusparse(GpuBackend gpu) {
        // cuSPARSE needs nvJitLink, which the dynamic linker then finds by its soname, where the machine has it.
        MathProvider.load("libnvJitLink.so.13", "libnvJitLink.so.12");
        NativeLibrary library = MathProvider.load("libcusparse.so.12");
        return library == null ? null : new NvidiaCusparse(library);
    }

    @Override
    public CurandBackend curand(GpuBackend gpu) {
        NativeLibrary library = MathProvider.load("libcurand.so.10");
        return library == null ? null : new NvidiaCurand(library);
    }

    @Override
    public NcclBackend nccl(GpuBackend gpu) {
        NativeLibrary library = MathProvider.load("libnccl.so.2");
        return library == null ? null : new NvidiaNccl(library, gpu);
    }

    @Override
    public CusparseLtBackend cusparseLt(GpuBackend gpu) {
        NativeLibrary library = MathProvider.load("libcusparseLt.so.0");
        return library == null ? null : NvidiaCusparseLt.open(library);
    }
}
