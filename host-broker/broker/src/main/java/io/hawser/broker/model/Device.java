package io.hawser.broker.model;

/**
 * A GPU as a worker describes it.
 *
 * @param totalBytes of device memory, 0 or more.
 */
public record Device(String name, String uuid, long totalBytes, String pciBusId, String computeCapability) { }
