package io.hawser.worker.control;

import io.hawser.worker.channel.shm.SharedRegion;

/** What the broker tells a worker. */
public sealed interface BrokerMessage {
    /**
     * Serve this session; the descriptor of the guest's connected socket, or of its region, came with the message.
     *
     * @param sessionId the broker's number of the session, not secret.
     * @param vgpu name of the share that the session uses.
     * @param memoryBytes device memory that the session may allocate; 0 for no limit but the device's.
     * @param peer the guest's address, for the log.
     * @param program the guest's program name as it says, for the log.
     * @param place where the guest is in its region; null when the descriptor is a socket.
     */
    record Assign(long sessionId, String vgpu, long memoryBytes, String peer, String program,
        SharedRegion.Place place) implements BrokerMessage { }

    /** The eventfd came with the message that the guest of the region in the next one rings. */
    record Doorbell() implements BrokerMessage { }

    /**
     * End the session, or the idle worker.
     *
     * @param reason for the guest and the log.
     */
    record End(String reason) implements BrokerMessage { }
}
