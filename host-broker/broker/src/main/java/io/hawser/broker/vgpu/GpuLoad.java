package io.hawser.broker.vgpu;

import io.hawser.broker.model.Device;

/**
 * What is promised of one GPU.
 *
 * @param device the GPU.
 * @param vgpus that are placed on it.
 * @param shares sum of their compute shares.
 * @param reservedBytes memory that is reserved on it.
 * @param contexts of workers that are counted on: those kept ready, and one at least of each vGPU that reserves memory.
 * @param contextBytes what one of them costs there; 0 while nobody knows.
 * @param exclusive name of the vGPU that has it alone; empty when none does.
 * @param shared name of one that is placed on it; empty when none is.
 * @param failing whether workers for it do not start.
 */
public record GpuLoad(Device device, int vgpus, int shares, long reservedBytes, int contexts,
    long contextBytes, String exclusive, String shared, boolean failing) {

    /** Memory that is spoken for. */
    public long spokenForBytes() {
        return reservedBytes + contexts * contextBytes;
    }
}
