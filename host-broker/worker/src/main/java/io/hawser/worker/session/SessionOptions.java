package io.hawser.worker.session;

/**
 * What admission has decided about a session.
 *
 * @param sessionId the broker's number of it.
 * @param vgpu name of its share.
 * @param memoryBytes device memory that it may allocate; 0 for what the device has.
 * @param peer the guest's address, for the log.
 * @param program the guest's program as it says, for the log.
 * @param creditWindowBytes work that it may have waiting in streams.
 */
public record SessionOptions(long sessionId, String vgpu, long memoryBytes, String peer, String program,
    long creditWindowBytes) { }
