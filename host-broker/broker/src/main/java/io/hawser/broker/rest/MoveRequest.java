package io.hawser.broker.rest;

/**
 * The GPU to which a vGPU moves; see openapi.yml.
 *
 * @param gpu number or UUID, or "same" for other workers on the same GPU.
 */
public record MoveRequest(String gpu) {}
