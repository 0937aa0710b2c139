package io.hawser.turns;

/** The scheduler's view of a worker. The state is only input for scheduling: a worker can lie about it. */
public interface Seat {
    /** {@code IDLE}, {@code WANTS} or {@code BUSY} of {@link io.hawser.shm.turns.TurnPage}. */
    int state();

    /** Sends the worker {@code FREE}, {@code OPEN}, {@code TURN}, {@code WAIT} or {@code NEXT}. */
    void setPermit(int permit);

    /** Returns how much the worker has copied between host and device, in units of its page; 0 if it copies nothing. */
    default int copied() {
        return 0;
    }

    /**
     * Sends the worker how to copy.
     *
     * @param copies as in {@link io.hawser.shm.turns.TurnPage#copies}.
     */
    default void setCopies(int copies) {}
}
