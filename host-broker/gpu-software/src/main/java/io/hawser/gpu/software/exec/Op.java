package io.hawser.gpu.software.exec;

/** The reason that a thread's code returned to the scheduler. The numbers are constants in generated code. */
public enum Op {
    BARRIER,
    YIELD,
    SYNCWARP,
    SHFL_UP,
    SHFL_DOWN,
    SHFL_BFLY,
    SHFL_IDX,
    VOTE_ALL,
    VOTE_ANY,
    VOTE_UNI,
    VOTE_BALLOT,
    MATCH_ANY,
    MATCH_ALL,
    REDUX_ADD,
    REDUX_MIN_S,
    REDUX_MIN_U,
    REDUX_MAX_S,
    REDUX_MAX_U,
    REDUX_AND,
    REDUX_OR,
    REDUX_XOR,
    ELECT,
    ACTIVEMASK;

    static final Op[] ALL = values();

    /** Whether the lanes of one warp resolve it together. */
    public boolean warp() {
        return ordinal() >= SYNCWARP.ordinal();
    }
}
