package io.hawser.gpu.software.image;

/** An unusable image; carries the CUresult of the load. */
public final class ImageException extends Exception {
    /** CUDA 13.0 cuda.h, CUDA_ERROR_INVALID_IMAGE. */
    public static final int INVALID_IMAGE = 200;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_NO_BINARY_FOR_GPU. */
    public static final int NO_BINARY_FOR_GPU = 209;

    private final int cuResult;

    /**
     * @param cuResult one of the constants of this class.
     * @param message rule, then values.
     */
    public ImageException(int cuResult, String message) {
        super(message);
        this.cuResult = cuResult;
    }

    static ImageException invalid(String message) {
        return new ImageException(INVALID_IMAGE, message);
    }

    /** The CUresult of the load. */
    public int cuResult() {
        return cuResult;
    }
}
