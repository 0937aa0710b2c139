package io.hawser.broker.model;

/**
 * A GPU of a broker of the pool, as that broker has published it.
 *
 * @param contextBytes memory of one context there; 0 while unknown.
 * @param otherContexts contexts that are reserved there beyond one for each vGPU that reserves memory.
 * @param failing whether workers for it fail to start.
 * @param drained whether it gets no vGPU, because an operator drains it.
 */
public record PeerGpu(String uuid, String name, String pciBusId, String computeCapability, long totalBytes,
    long contextBytes, int otherContexts, boolean failing, boolean drained) {
    /** The GPU without its figures. */
    public Device device() {
        return new Device(name, uuid, totalBytes, pciBusId, computeCapability);
    }
}
