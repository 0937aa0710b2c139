package io.hawser.broker.turns;

/** A worker as the scheduler sees it. What it says is not believed, only looked at. */
interface Seat {
    /** {@code IDLE}, {@code WANTS} or {@code BUSY} of {@link io.hawser.shm.turns.TurnPage}. */
    int state();

    /** Tells it {@code FREE}, {@code OPEN}, {@code TURN}, {@code WAIT} or {@code NEXT}. */
    void permit(int permit);
}
