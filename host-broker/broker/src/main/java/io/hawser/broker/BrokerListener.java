package io.hawser.broker;

import io.hawser.broker.door.DoorListener;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.SessionView;
import java.time.Duration;

/** Receives the broker's events, for metrics; on the event loop. */
public interface BrokerListener extends DoorListener {
    /** A worker became ready; {@code time} since its start. */
    void workerStarted(Duration time);

    /** A worker failed before it had a session. */
    default void workerFailed(String reason) {}

    /** A session has received its worker. */
    default void sessionRuns(SessionView session) {}

    /** A session's records go by another carrier than its connection from now on. */
    default void sessionCarried(SessionView session) {}

    /** A session that had a worker has ended; {@code error} when a failure ended it. */
    default void sessionOver(SessionView session, String reason, boolean error) {}

    /** A request to move a vGPU to another GPU has ended. */
    default void moveOver(MoveOutcome outcome) {}
}
