package io.hawser.cuda.backend;

/**
 * Opens the math libraries of a kind of GPU at a session's first call; {@code ServiceLoader} finds the provider. The
 * environment variable {@value #LIBRARIES} lists the libraries that the broker has found, {@code soname=path} each,
 * separated by colons.
 */
public interface MathProvider {
    /** Name of the variable. */
    String LIBRARIES = "HAWSER_LIBRARIES";

    /** Name of the backend. */
    String backend();

    /**
     * Opens cuBLAS.
     *
     * @return null when the machine has no such library; the log gives the reason.
     */
    CublasBackend cublas(GpuBackend gpu);

    /**
     * Opens cublasLt.
     *
     * @return null when the machine has no such library; the log gives the reason.
     */
    default CublasLtBackend cublasLt(GpuBackend gpu) {
        return null;
    }

    /**
     * Opens cuFFT.
     *
     * @return null when the machine has no such library; the log gives the reason.
     */
    default CufftBackend cufft(GpuBackend gpu) {
        return null;
    }

    /**
     * Opens cuDNN.
     *
     * @return null when the machine has no such library; the log gives the reason.
     */
    default CudnnBackend cudnn(GpuBackend gpu) {
        return null;
    }

    /**
     * Opens cuSOLVER.
     *
     * @return null when the machine has no such library; the log gives the reason.
     */
    default CusolverBackend cusolver(GpuBackend gpu) {
        return null;
    }

    /**
     * Opens cuSPARSE.
     *
     * @return null when the machine has no such library; the log gives the reason.
     */
    default CusparseBackend cusparse(GpuBackend gpu) {
        return null;
    }

    /**
     * Opens cuRAND.
     *
     * @return null when the machine has no such library; the log gives the reason.
     */
    default CurandBackend curand(GpuBackend gpu) {
        return null;
    }

    /**
     * Opens NCCL.
     *
     * @return null when the machine has no such library; the log gives the reason.
     */
    default NcclBackend nccl(GpuBackend gpu) {
        return null;
    }

    /**
     * Opens cuSPARSELt.
     *
     * @return null when the machine has no such library, or an older one than 0.8; the log gives the reason.
     */
    default CusparseLtBackend cusparseLt(GpuBackend gpu) {
        return null;
    }

    /** Loads what a session needs from files, before the worker enters its jail. */
    default void loadAhead() {
        // Most providers open their libraries later, by the broker.
    }

    /** Loads the first library of these names that the broker has found; null when it has found none, or none loads. */
    static NativeLibrary load(String... sonames) {
        for (String soname : sonames) {
            for (String entry : listed()) {
                if (entry.startsWith(soname + "=")) {
                    return open(entry);
                }
            }
        }
        System.getLogger(MathProvider.class.getName()).log(System.Logger.Level.WARNING,
            "no math library {0} in hawser.libraries.path: its calls are not supported", sonames[0]);
        return null;
    }

    /** Loads all libraries that the broker has found whose names begin so. */
    static void loadAll(String begin) {
        for (String entry : listed()) {
            if (entry.startsWith(begin)) {
                open(entry);
            }
        }
    }

    private static String[] listed() {
        String listed = System.getenv(LIBRARIES);
        return listed == null ? new String[0] : listed.split(":");
    }

    private static NativeLibrary open(String entry) {
        try {
            return NativeLibrary.open(entry.substring(entry.indexOf('=') + 1));
        } catch (IllegalStateException e) {
            System.getLogger(MathProvider.class.getName()).log(System.Logger.Level.WARNING,
                e.getMessage() + ": " + e.getCause().getMessage());
            return null;
        }
    }
}
