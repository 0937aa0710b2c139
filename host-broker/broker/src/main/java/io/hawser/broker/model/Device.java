package io.hawser.broker.model;

/**
 * A GPU, described by a worker.
 *
 * @param totalBytes of device memory, 0 or more.
 */
public record Device(String name, String uuid, long totalBytes, String pciBusId, String computeCapability) {}
