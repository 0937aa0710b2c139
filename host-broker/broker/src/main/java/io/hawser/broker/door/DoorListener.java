package io.hawser.broker.door;

import io.hawser.broker.session.Carrier;
import java.time.Duration;

/** Told which guests come, on the event loop. */
public interface DoorListener {
    /** A guest was refused. */
    void refused(Carrier carrier, Refusal refusal);

    /** A worker has the guest's socket or region, this long after the guest was seen. */
    void sessionStarted(Carrier carrier, Duration time);
}
