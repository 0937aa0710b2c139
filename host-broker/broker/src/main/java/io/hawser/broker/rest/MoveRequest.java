package io.hawser.broker.rest;

/**
 * The place to which a vGPU moves; see openapi.yml.
 *
 * @param gpu number or UUID, or "same" for other workers on the same GPU; null for any GPU of another broker.
 * @param broker name of another broker of the pool; null for the vGPU's own one.
 */
public record MoveRequest(String gpu, String broker) {}
