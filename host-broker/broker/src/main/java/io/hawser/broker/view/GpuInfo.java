package io.hawser.broker.view;

/** A GPU; see openapi.yml. Null is unknown. */
public record GpuInfo(int index, String name, String uuid, String backend, long totalBytes, long usedBytes,
    String pciBusId, String computeCapability, int sessions, long reservedBytes, long contextBytes, int vgpus,
    String health, String healthDetail, Integer utilizationPercent, Long memoryUsedBytes, Integer temperatureCelsius,
    Double powerWatts) {}
