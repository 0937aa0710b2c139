package io.hawser.broker.move;

import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;

/** A move that has begun and not ended. Event loop only. */
interface RunningMove {
    /** Handles a message of one of the move's workers; returns false for another worker's or another message. */
    boolean handle(Worker worker, WorkerMessage message);

    /** One of the move's workers, or another one, has ended. */
    void onExit(Worker worker, String reason);

    /** Ends the move for a reason of the broker. Sessions whose source still has them stay there. */
    void fail(String reason);
}
