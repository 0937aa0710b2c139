package io.hawser.gpu.software.exec;

/** What a thread waits for when its code returns to the scheduler. The numbers are constants in generated code. */
public enum Op {
    BARRIER, YIELD,
    SYNCWARP, SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX, VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT, MATCH_ANY, MATCH_ALL,
    REDUX_ADD, REDUX_MIN_S, REDUX_MIN_U, REDUX_MAX_S, REDUX_MAX_U, REDUX_AND, REDUX_OR, REDUX_XOR, ELECT, ACTIVEMASK;

    static final Op[] ALL = values();

    /** Resolved among the lanes of one warp. */
    public boolean warp() {
        return ordinal() >= SYNCWARP.ordinal();
    }
}
