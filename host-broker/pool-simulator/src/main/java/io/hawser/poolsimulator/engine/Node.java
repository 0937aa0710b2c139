package io.hawser.poolsimulator.engine;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.PeerGpu;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.vgpu.Placement;
import io.hawser.broker.vgpu.PoolPlacement;
import io.hawser.broker.vgpu.PoolTable;
import io.hawser.broker.vgpu.VgpuTable;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** A broker with its own table of vGPUs. A broker that is cut off sees no change of the pool until it returns. */
final class Node {
    private static final int SPARE_WORKERS = 1;

    private final String id;
    private final int number;
    private final List<Device> devices = new ArrayList<>();
    private final VgpuTable vgpus;
    private List<PeerGpu> published = List.of();
    private boolean isChanged = true; // since the last heartbeat
    private boolean isCut;
    private long beatMs;

    Node(int number, PoolShape shape, Placement placement) {
        this.number = number;
        id = "broker-" + number;
        vgpus = new VgpuTable(placement, SPARE_WORKERS, uuid -> false);
        for (int i = 0; i < shape.gpus(); i++) {
            String uuid = String.format("GPU-%08x-0000-4000-8000-%012x", number, i);
            devices.add(new Device("GPU", uuid, shape.gpuBytes(), "", ""));
            vgpus.setContextBytes(uuid, shape.contextBytes());
        }
        vgpus.settle(devices);
    }

    String id() {
        return id;
    }

    List<Device> devices() {
        return devices;
    }

    VgpuTable vgpus() {
        return vgpus;
    }

    boolean isCut() {
        return isCut;
    }

    /** Applies a row of this broker. */
    void apply(VgpuStore.Kept row) {
        vgpus.synchronize(row.vgpu(), row.placed());
        isChanged = true;
    }

    void remove(String vgpu) {
        vgpus.remove(vgpu);
        isChanged = true;
    }

    /** Publishes its GPUs, as every two seconds. */
    void beat(long nowMs) {
        beatMs = nowMs;
        if (isChanged) {
            published = PoolPlacement.published(vgpus.present(), vgpus.list());
            isChanged = false;
        }
    }

    void cut() {
        isCut = true;
    }

    /**
     * Reads the pool and drops what others have taken or deleted, then writes a heartbeat.
     *
     * @return number of vGPUs that it drops.
     */
    int restore(PoolTable pool, long nowMs) {
        isCut = false;
        List<String> lost = vgpus.list().stream().map(view -> view.vgpu().name())
            .filter(name -> pool.find(name).filter(row -> row.broker().equals(id)).isEmpty()).toList();
        lost.forEach(this::remove);
        pool.of(id).forEach(this::apply);
        beat(nowMs);
        return lost.size();
    }

    /** This broker as the others see it. */
    PeerBroker peer(long nowMs) {
        return new PeerBroker(id, number, id, 1, Instant.ofEpochMilli(beatMs), Duration.ofMillis(nowMs - beatMs), 0, "",
            "", "", "", published);
    }
}
