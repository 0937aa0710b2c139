package io.hawser.gpu.software.dnn;

import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_BAD_PARAM;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_NOT_SUPPORTED;

/** Why a call or a descriptor is not served, with the library's status. */
final class Refusal extends Exception {
    private static final long serialVersionUID = 1;

    private final int status;

    private Refusal(int status, String reason) {
        super(reason, null, false, false);
        this.status = status;
    }

    /** The library may have it, but the software GPU does not. */
    static Refusal unsupported(String what) {
        return new Refusal(CUDNN_STATUS_NOT_SUPPORTED, "not supported by the software GPU: " + what);
    }

    /** A refusal with another status of the library. */
    static Refusal of(int status, String reason) {
        return new Refusal(status, reason);
    }

    /**
     * Checks an argument.
     *
     * @throws Refusal with "bad parameter" if the rule does not hold.
     */
    static void require(boolean holds, String rule) throws Refusal {
        if (!holds) {
            throw new Refusal(CUDNN_STATUS_BAD_PARAM, "bad parameter: " + rule);
        }
    }

    /**
     * Checks a limit of the software GPU.
     *
     * @param need what the software GPU computes with.
     * @throws Refusal with "not supported" if the condition does not hold.
     */
    static void support(boolean holds, String need) throws Refusal {
        if (!holds) {
            throw new Refusal(CUDNN_STATUS_NOT_SUPPORTED, "not supported by the software GPU, which needs " + need);
        }
    }

    int status() {
        return status;
    }
}
