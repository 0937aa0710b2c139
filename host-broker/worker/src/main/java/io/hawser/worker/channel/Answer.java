package io.hawser.worker.channel;

/**
 * The answer to a guest that offers to send its records over RDMA.
 *
 * @param end the worker's end, which the guest's records reach from now on; empty when they stay on the connection.
 * @param reason why they stay there; else empty.
 */
public record Answer(byte[] end, String reason) {}
