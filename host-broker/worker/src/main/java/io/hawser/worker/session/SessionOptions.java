package io.hawser.worker.session;

/**
 * What admission has decided about a session.
 *
 * @param sessionId the broker's number of it.
 * @param vgpu name of its share.
 * @param memory device memory that it may allocate, together with other sessions of the share.
 * @param peer the guest's address, for the log.
 * @param program the guest's program as it says, for the log.
 * @param creditWindowBytes work that it may have waiting in streams.
 */
public record SessionOptions(long sessionId, String vgpu, MemoryQuota memory, String peer, String program,
    long creditWindowBytes) { }
