package io.hawser.broker.vgpu;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.Sharing;
import io.hawser.broker.model.Vgpu;

/** Sums the vGPUs on one GPU. */
final class LoadSum {
    private int vgpus;
    private int reserving;
    private int shares;
    private Reserved reserved = Reserved.NONE;
    private String exclusive = "";
    private String shared = "";

    void add(Vgpu vgpu) {
        vgpus++;
        reserving += vgpu.reserves() ? 1 : 0;
        shares += vgpu.computeShare();
        reserved = reserved.plus(vgpu);
        shared = vgpu.name();
        exclusive = vgpu.mode() == Sharing.EXCLUSIVE ? vgpu.name() : exclusive;
    }

    /** Number of vGPUs that reserve memory. */
    int reserving() {
        return reserving;
    }

    boolean hasSwappable() {
        return reserved.swappableBytes() > 0;
    }

    /** The sum as the load of a GPU; the other values as in {@link GpuLoad}. */
    GpuLoad on(Device device, int contexts, long contextBytes, boolean failing, boolean drained) {
        return new GpuLoad(device, vgpus, shares, reserved, contexts, contextBytes, exclusive, shared, failing,
            drained);
    }
}
