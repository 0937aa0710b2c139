package io.hawser.broker.rest;

/**
 * The GPU to which a vGPU moves; see openapi.yml.
 *
 * @param gpu number or UUID.
 */
public record MoveRequest(String gpu) {}
