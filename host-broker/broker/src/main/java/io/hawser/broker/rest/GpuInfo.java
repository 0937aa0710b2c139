package io.hawser.broker.rest;

/** A GPU; see openapi.yml. */
public record GpuInfo(String name, String uuid, String backend, long totalBytes, long usedBytes, String pciBusId,
    String computeCapability, int sessions) { }
