package io.hawser.broker.model;

/**
 * The guest of a session. Only vGPU, carrier and peer are verified. The guest supplies the other fields itself: they
 * are for people, never for decisions.
 *
 * @param keyId the proved token; empty over shared memory, where access to the region is the permission.
 * @param vgpu the vGPU of the token or the region.
 * @param carrier the transport of its records.
 * @param peer its IP address and TCP port, or its region and slot.
 * @param pid its process id in its own machine.
 * @param program its program's name.
 * @param host its machine's name.
 */
public record Guest(String keyId, String vgpu, Carrier carrier, String peer, long pid, String program, String host) {}
