package io.hawser.broker.door;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import java.time.Duration;

/** Told which guests come, on the event loop. */
public interface DoorListener {
    /** A guest was refused. */
    void refused(Carrier carrier, Refusal refusal);

    /**
     * A guest was refused, for people; told instead of the shorter one, which it tells.
     *
     * @param vgpu empty while it is not known.
     * @param peer its address, or its region and slot.
     * @param reason as the guest is told, with what it said of itself.
     */
    default void refused(Carrier carrier, Refusal refusal, String vgpu, String peer, String reason) {
        refused(carrier, refusal);
    }

    /** A worker has the guest's socket or region, this long after the guest was seen. */
    void sessionStarted(Carrier carrier, Duration time);
}
