package io.hawser.broker.nvml;

import io.hawser.cuda.generated.nvml.nvmlReturn_t;

/** A function of NVML is missing or has failed. */
final class NvmlException extends Exception {
    private static final long serialVersionUID = 1L;

    private final int code;

    NvmlException(String message, int code) {
        super(message);
        this.code = code;
    }

    /** The {@code nvmlReturn_t}. */
    int code() {
        return code;
    }

    /** Whether the GPU cannot be reached any more, or not before a reset. */
    boolean isLoss() {
        return code == nvmlReturn_t.NVML_ERROR_GPU_IS_LOST || code == nvmlReturn_t.NVML_ERROR_RESET_REQUIRED;
    }
}
