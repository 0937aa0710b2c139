package io.hawser.gpu.software.ptx;

/**
 * PTX that is malformed, unresolved or unsupported. Malformed and unresolved text fails the load; unsupported text
 * refuses the functions that contain it.
 */
public final class PtxException extends Exception {
    /** CUDA 13.0 cuda.h, CUDA_ERROR_INVALID_PTX. */
    public static final int INVALID_PTX = 218;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_NOT_FOUND: a symbol that no linked module defines. */
    public static final int NOT_FOUND = 500;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_NOT_SUPPORTED. */
    public static final int NOT_SUPPORTED = 801;

    // A guest writes the words of an instruction, which go to logs and to the guest's standard error.
    private static final int MAX_WORDS = 200;

    private final int cuResult;

    /**
     * @param cuResult one of the constants of this class.
     * @param message  the defect, with line and instruction where there is one.
     */
    public PtxException(int cuResult, String message) {
        super(message);
        this.cuResult = cuResult;
    }

    /** The CUresult of the load. */
    public int cuResult() {
        return cuResult;
    }

    /** Creates the exception for text that is not PTX. */
    public static PtxException invalid(int line, String rule) {
        return new PtxException(INVALID_PTX, "line " + line + ": " + rule);
    }

    /** Creates the refusal of PTX that the software GPU does not support. */
    public static PtxException unsupported(int line, String what) {
        String cut = what.length() <= MAX_WORDS ? what : what.substring(0, MAX_WORDS) + "...";
        return new PtxException(NOT_SUPPORTED, "line " + line + ": not supported by the software GPU: " + cut);
    }

    /** Whether this only refuses functions; any other exception fails the load. */
    public boolean isRefusal() {
        return cuResult == NOT_SUPPORTED;
    }
}
