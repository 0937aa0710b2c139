package io.hawser.worker.session;

import io.hawser.worker.channel.Answer;

/**
 * The result of a session's admission.
 *
 * @param sessionId the broker's number of the session.
 * @param vgpu name of its vGPU.
 * @param memory device memory that it may allocate, shared with other sessions of the vGPU.
 * @param peer the guest's address, for the log.
 * @param program name of the guest's program, chosen by the guest; for the log.
 * @param creditWindowBytes bytes of its records that may wait in streams.
 * @param answer to the guest's offer of RDMA; null for a guest that has offered nothing.
 * @param mayLeave whether the session may follow its vGPU to another broker.
 */
public record SessionOptions(long sessionId, String vgpu, MemoryQuota memory, String peer, String program,
    long creditWindowBytes, Answer answer, boolean mayLeave) {}
