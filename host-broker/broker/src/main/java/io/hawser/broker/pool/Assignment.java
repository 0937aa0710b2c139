package io.hawser.broker.pool;

/**
 * What a worker is told of its session.
 *
 * @param sessionId counts up from 1 since the broker started.
 * @param vgpu name of the share.
 * @param memoryBytes device memory quota; 0 is all of it.
 * @param peer address of the guest.
 * @param program what the guest says its program is; for logs only.
 */
public record Assignment(long sessionId, String vgpu, long memoryBytes, String peer, String program) { }
