package io.hawser.broker.door;

import java.time.Duration;

/** Told what happens at the front door, on the event loop. */
public interface DoorListener {
    /** A connection was refused. */
    void refused(Refusal refusal);

    /** A worker has the socket, this long after the guest connected. */
    void sessionStarted(Duration time);
}
