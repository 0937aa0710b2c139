package io.hawser.broker.vgpu;

import io.hawser.broker.model.Device;

/**
 * The reservations on one GPU.
 *
 * @param device the GPU.
 * @param vgpus number of vGPUs placed on it.
 * @param shares sum of their compute shares.
 * @param reserved memory that they reserve on it.
 * @param contexts number of workers' contexts to reserve: the spare workers, the sessions, and at least one for each
 *     vGPU that reserves memory.
 * @param contextBytes memory of one context there; 0 while unknown.
 * @param exclusive name of the vGPU that uses the GPU exclusively; empty when none does.
 * @param shared name of one vGPU placed on it; empty when none is.
 * @param failing whether workers for it fail to start.
 * @param drained whether it gets no vGPU, because an operator drains it.
 */
public record GpuLoad(Device device, int vgpus, int shares, Reserved reserved, int contexts,
    long contextBytes, String exclusive, String shared, boolean failing, boolean drained) {

    /** The same load with more contexts. */
    GpuLoad withContexts(int more) {
        return new GpuLoad(device, vgpus, shares, reserved, contexts + more, contextBytes, exclusive, shared, failing,
            drained);
    }

    /** The same load of a GPU that nobody drains. */
    public GpuLoad undrained() {
        return new GpuLoad(device, vgpus, shares, reserved, contexts, contextBytes, exclusive, shared, failing, false);
    }

    /** Memory reserved by all vGPUs. */
    public long reservedBytes() {
        return reserved.allBytes();
    }

    /** Memory reserved by all vGPUs and contexts. */
    public long committedBytes() {
        return reserved.allBytes() + contexts * contextBytes;
    }

    /** Memory reserved by contexts, by the vGPUs that are not swappable, and by the largest swappable vGPU. */
    long togetherBytes() {
        return reserved.togetherBytes() + contexts * contextBytes;
    }

    /** Memory that contexts and the other vGPUs leave to the swappable vGPUs together; negative if they leave none. */
    public long swappableRoomBytes() {
        return device.totalBytes() - reserved.fixedBytes() - contexts * contextBytes;
    }
}
