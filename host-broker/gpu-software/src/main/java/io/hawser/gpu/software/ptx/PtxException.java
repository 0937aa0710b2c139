package io.hawser.gpu.software.ptx;

/**
 * PTX that is malformed or unresolved, which fails the load, or that the software GPU does not run, which refuses the
 * functions that hold it.
 */
public final class PtxException extends Exception {
    /** CUDA 13.0 cuda.h, CUDA_ERROR_INVALID_PTX. */
    public static final int INVALID_PTX = 218;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_NOT_FOUND: a symbol that no linked module defines. */
    public static final int NOT_FOUND = 500;
    /** CUDA 13.0 cuda.h, CUDA_ERROR_NOT_SUPPORTED. */
    public static final int NOT_SUPPORTED = 801;

    // A guest writes the words of an instruction; they go to logs and to the guest's standard error.
    private static final int MAX_WORDS = 200;

    private final int cuResult;

    /**
     * @param cuResult one of the constants of this class.
     * @param message  what is wrong, naming line and instruction where there is one.
     */
    public PtxException(int cuResult, String message) {
        super(message);
        this.cuResult = cuResult;
    }

    /** The CUresult that the load answers with. */
    public int cuResult() {
        return cuResult;
    }

    /** The text is not PTX. */
    public static PtxException invalid(int line, String rule) {
        return new PtxException(INVALID_PTX, "line " + line + ": " + rule);
    }

    /** The text is PTX, of a kind that the software GPU refuses. */
    public static PtxException unsupported(int line, String what) {
        String cut = what.length() <= MAX_WORDS ? what : what.substring(0, MAX_WORDS) + "...";
        return new PtxException(NOT_SUPPORTED, "line " + line + ": not supported by the software GPU: " + cut);
    }

    /** Whether this refuses functions only; every other exception fails the load. */
    public boolean isRefusal() {
        return cuResult == NOT_SUPPORTED;
    }
}
