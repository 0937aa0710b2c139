package io.hawser.broker.view;

/** A GPU; see openapi.yml. Null is unknown. */
public record GpuInfo(int index, String name, String uuid, String backend, long totalBytes, long usedBytes,
    String pciBusId, String computeCapability, int sessions, long reservedBytes, long contextBytes, int vgpus,
    String health, String healthDetail, Integer utilizationPercent, Long memoryUsedBytes, Integer temperatureCelsius,
    Double powerWatts, boolean drained, String broker) {
    /** Its key in a pool, since software GPUs of two brokers may have one UUID; its UUID at a broker that is alone. */
    public String key() {
        return broker.isEmpty() ? uuid : broker + "/" + uuid;
    }
}
