package io.hawser.broker.model;

/**
 * Who asks for a session. All but the vGPU, the carrier and the peer is what the guest says of itself: for people,
 * never for decisions.
 *
 * @param keyId the token that it proved; empty over shared memory, where having the region is the permission.
 * @param vgpu the share that the token, or the region, opens.
 * @param carrier how its records travel.
 * @param peer its IP address and TCP port, or its region and slot.
 * @param pid its process id, in its own machine.
 * @param program its program's name.
 * @param host its machine's name.
 */
public record Guest(String keyId, String vgpu, Carrier carrier, String peer, long pid, String program, String host) { }
