package io.hawser.worker.control;

/** What the broker tells a worker. */
public sealed interface BrokerMessage {
    /**
     * Serve this session; the guest's connected socket came with the message.
     *
     * @param sessionId the broker's number of the session, not secret.
     * @param vgpu name of the share that the session uses.
     * @param memoryBytes device memory that the session may allocate; 0 for no limit but the device's.
     * @param peer the guest's address, for the log.
     * @param program the guest's program name as it says, for the log.
     */
    record Assign(long sessionId, String vgpu, long memoryBytes, String peer, String program)
        implements BrokerMessage { }

    /**
     * End the session, or the idle worker.
     *
     * @param reason for the guest and the log.
     */
    record End(String reason) implements BrokerMessage { }
}
