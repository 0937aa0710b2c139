package io.hawser.worker.session;

/** Results that the worker itself returns; numbers of cuda.h, CUresult. */
public final class CudaResult {
    /** CUDA_SUCCESS. */
    public static final int SUCCESS = 0;
    /** CUDA_ERROR_INVALID_VALUE. */
    public static final int INVALID_VALUE = 1;
    /** CUDA_ERROR_OUT_OF_MEMORY. */
    public static final int OUT_OF_MEMORY = 2;
    /** CUDA_ERROR_DEVICE_UNAVAILABLE. */
    public static final int DEVICE_UNAVAILABLE = 46;
    /** CUDA_ERROR_INVALID_DEVICE. */
    public static final int INVALID_DEVICE = 101;
    /** CUDA_ERROR_INVALID_CONTEXT. */
    public static final int INVALID_CONTEXT = 201;
    /** CUDA_ERROR_INVALID_HANDLE. */
    public static final int INVALID_HANDLE = 400;
    /** CUDA_ERROR_NOT_FOUND. */
    public static final int NOT_FOUND = 500;
    /** CUDA_ERROR_CONTEXT_IS_DESTROYED. */
    public static final int CONTEXT_IS_DESTROYED = 709;
    /** CUDA_ERROR_NOT_SUPPORTED. */
    public static final int NOT_SUPPORTED = 801;
    /** CUDA_ERROR_STREAM_CAPTURE_INVALIDATED. */
    public static final int STREAM_CAPTURE_INVALIDATED = 901;
    /** CUDA_ERROR_UNKNOWN. */
    public static final int UNKNOWN = 999;

    private CudaResult() {}
}
