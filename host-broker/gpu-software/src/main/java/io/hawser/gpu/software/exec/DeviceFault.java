package io.hawser.gpu.software.exec;

/** A kernel's error that ends its context: carries the CUresult that the context returns from then on. */
public final class DeviceFault extends RuntimeException {
    /** CUDA 13.0 cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS. */
    public static final int ILLEGAL_ADDRESS = 700;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES. */
    public static final int OUT_OF_RESOURCES = 701;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_ASSERT. */
    public static final int ASSERT = 710;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_ILLEGAL_INSTRUCTION. */
    public static final int ILLEGAL_INSTRUCTION = 715;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_MISALIGNED_ADDRESS. */
    public static final int MISALIGNED_ADDRESS = 716;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_INVALID_ADDRESS_SPACE. */
    public static final int INVALID_ADDRESS_SPACE = 717;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_INVALID_PC: an indirect call to an address without a function. */
    public static final int INVALID_PC = 718;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_LAUNCH_FAILED. */
    public static final int LAUNCH_FAILED = 719;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_NOT_SUPPORTED: detected only at run time. */
    public static final int NOT_SUPPORTED = 801;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_UNKNOWN: the launch was cancelled because its session ended. */
    public static final int CANCELLED = 999;

    private final int cuResult;

    /**
     * @param cuResult one of the constants of this class.
     * @param message  rule, then values; shown in the worker's log.
     */
    public DeviceFault(int cuResult, String message) {
        super(message, null, false, false);
        this.cuResult = cuResult;
    }

    /** The CUresult of this fault. */
    public int cuResult() {
        return cuResult;
    }
}
