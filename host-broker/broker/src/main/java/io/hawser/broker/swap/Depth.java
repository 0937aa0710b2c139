package io.hawser.broker.swap;

/**
 * How far a session that is out has left its GPU: only its memory, or all of its GPU state (<em>deep</em>). Its worker
 * first stops its calls of the driver, then a helper moves the process. The way back begins with the helper. Event loop
 * only.
 */
final class Depth {
    private enum State {
        /** The worker has its context on the GPU. */
        UP,
        /** The worker has the order to make no call of the driver. */
        FREEZING,
        /** The helper moves the worker to the host. */
        SINKING,
        /** All of the worker's GPU state is on the host. */
        DEEP,
        /** The helper moves the worker to the GPU. */
        RISING
    }

    private final Residency.Seat seat;
    private State state = State.UP;
    private boolean mustRise; // its way back has been ordered
    private long givenBytes; // memory of the GPU that the move has freed
    private long sinceNs; // of FREEZING
    private long retryNs = Long.MIN_VALUE;
    private String stays = ""; // why it is not tried again

    Depth(Residency.Seat seat) {
        this.seat = seat;
    }

    /** Whether the session can get its memory back at once. */
    boolean isUp() {
        return state == State.UP;
    }

    boolean isDeep() {
        return state == State.DEEP;
    }

    /** Memory of the GPU that it does not use now, and uses again on its way back. */
    long givenBytes() {
        return state == State.DEEP ? givenBytes : 0;
    }

    /** Why it cannot leave wholly; empty if it can, or has. */
    String stays() {
        return stays;
    }

    /** Begins the way down, unless it has begun or is not possible. */
    void sink(long nowNs) {
        if (state == State.UP && stays.isEmpty() && nowNs >= retryNs) {
            state = State.FREEZING;
            sinceNs = nowNs;
            mustRise = false;
            seat.freeze();
        }
    }

    /** Whether its worker does not answer the order to make no calls. */
    boolean isStuck(long nowNs) {
        return state == State.FREEZING && nowNs - sinceNs >= Residency.STUCK_NS;
    }

    /**
     * The worker has answered {@link Residency.Seat#freeze}.
     *
     * @param isRefused whether it goes on to make calls.
     * @param isWanted whether its vGPU waits for the GPU by now.
     * @param laterNs when to try again.
     * @return whether the session is up again.
     */
    boolean frozen(boolean isRefused, boolean isWanted, long laterNs) {
        if (state != State.FREEZING) {
            return false;
        }
        if (!isRefused && !isWanted && !mustRise) {
            state = State.SINKING;
            seat.sink();
            return false;
        }
        state = State.UP;
        retryNs = laterNs;
        if (!isRefused && !mustRise) {
            seat.thaw();
        }
        return true;
    }

    /**
     * The helper has answered {@link Residency.Seat#sink}.
     *
     * @param problem why the process has stayed, unharmed; empty when it has moved.
     * @param freedBytes memory of the GPU that the move has freed, as far as it is known.
     * @return whether the session is up again.
     */
    boolean sunk(String problem, long freedBytes) {
        if (state != State.SINKING) {
            return false;
        }
        stays = problem;
        if (problem.isEmpty()) {
            state = State.DEEP;
            givenBytes = freedBytes;
            if (mustRise) {
                rise();
            }
            return false;
        }
        state = State.UP;
        if (!mustRise) {
            seat.thaw();
        }
        return true;
    }

    /**
     * Orders the way back.
     *
     * @return whether the session is up now; else {@link #frozen}, {@link #sunk} or {@link #risen} tells it.
     */
    boolean rise() {
        mustRise = true;
        if (state == State.DEEP) {
            state = State.RISING;
            seat.rise();
        }
        return state == State.UP;
    }

    /** The helper has moved the process back. Returns whether the session is up again. */
    boolean risen() {
        if (state != State.RISING) {
            return false;
        }
        state = State.UP;
        return true;
    }
}
