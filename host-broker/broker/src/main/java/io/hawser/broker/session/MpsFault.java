package io.hawser.broker.session;

/** The part of NVIDIA's MPS that has failed, by the error that a worker reports. */
enum MpsFault {
    /** A kernel of one of MPS's clients: all work on its GPUs is lost, and MPS's server stays. */
    CLIENT("a fault of one program on its GPU under MPS has ended all work there"),
    /** Somebody has ended this client by MPS's control program: the others go on. */
    TERMINATED("MPS's control program has ended its work"),
    /** MPS's server: all work on all GPUs is lost. The daemon starts another server for the next client. */
    SERVER("MPS's server has failed");

    // cuda.h, CUresult
    private static final int MPS_CONNECTION_FAILED = 805;
    private static final int MPS_RPC_FAILURE = 806;
    private static final int MPS_CLIENT_TERMINATED = 810;

    private final String reason;

    MpsFault(String reason) {
        this.reason = reason;
    }

    /** The fault behind a CUresult that has ended a session's work. */
    static MpsFault of(long result) {
        return result == MPS_CONNECTION_FAILED || result == MPS_RPC_FAILURE ? SERVER
            : result == MPS_CLIENT_TERMINATED ? TERMINATED : CLIENT;
    }

    /** The reason of a session's end; names no other session. */
    String reason() {
        return reason;
    }
}
