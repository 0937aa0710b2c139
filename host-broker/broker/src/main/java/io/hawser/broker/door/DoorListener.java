package io.hawser.broker.door;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import java.time.Duration;

/** Receives the events of the doors, on the event loop. */
public interface DoorListener {
    /** A guest was rejected. */
    void refused(Carrier carrier, Refusal refusal);

    /**
     * A guest was rejected; with details for people. The default calls the shorter form.
     *
     * @param vgpu empty while it is unknown.
     * @param peer its address, or its region and slot.
     * @param reason the text sent to the guest; it may contain names that the guest has chosen.
     */
    default void refused(Carrier carrier, Refusal refusal, String vgpu, String peer, String reason) {
        refused(carrier, refusal);
    }

    /** A worker has received the guest's socket or region; {@code time} since the guest connected. */
    void sessionStarted(Carrier carrier, Duration time);
}
