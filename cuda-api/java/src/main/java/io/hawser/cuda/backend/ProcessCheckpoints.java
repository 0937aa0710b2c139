package io.hawser.cuda.backend;

/**
 * Moves all GPU state of another process of this machine to host memory, and back: memory, contexts and code. Meanwhile
 * each call of the driver in that process waits. The methods block. One thread at a time.
 */
public interface ProcessCheckpoints {
    /** The state of a process. The ordinals are those of CUprocessState in cuda.h of CUDA 13.0. */
    enum State {
        /** It uses its GPUs. */
        RUNNING,
        /** Its calls of the driver wait. */
        LOCKED,
        /** Its state is in host memory. */
        CHECKPOINTED,
        /** Its state is lost, or the driver does not tell it. */
        FAILED
    }

    /**
     * The end of a move.
     *
     * @param result CUresult; CUDA_ERROR_NOT_SUPPORTED where the driver has no such function.
     * @param state of the process afterwards.
     */
    record Outcome(int result, State state) {}

    /**
     * Moves a process to host memory. After an error the process runs on, if the driver can let it.
     *
     * @param pid of a process that the caller may inspect.
     * @param timeoutMs how long running calls may delay the begin, over 0.
     */
    Outcome checkpoint(int pid, int timeoutMs);

    /** Moves a process back to its GPUs, and lets it run. */
    Outcome restore(int pid);
}
