package io.hawser.broker.view;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.SwapInfo;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuView;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/** A vGPU; see openapi.yml. */
public record VgpuInfo(String name, String id, Owner owner, long memoryBytes, int computeShare, String mode,
    String gpus, List<String> carriers, int maxSessions, String communication, boolean swappable, boolean rdma,
    Instant expires, Map<String, String> labels, String origin, Instant created, Instant changed,
    String state, String problem, List<String> placedGpus, int sessions, int startsWaiting, long usedBytes, int tokens,
    SwapInfo swap, String broker) {

    /** The owner of a vGPU; see openapi.yml. */
    public record Owner(String kind, String id) {}

    /**
     * Converts a vGPU to its form in the REST interface.
     *
     * @param startsWaiting its sessions that wait for a worker.
     * @param usedBytes memory of its sessions.
     * @param swap where its memory is; null if it is not swappable.
     * @param broker name of its broker in a pool; empty for none.
     */
    static VgpuInfo of(VgpuView view, int startsWaiting, long usedBytes, SwapInfo swap, String broker) {
        Vgpu vgpu = view.vgpu();
        return new VgpuInfo(vgpu.name(), vgpu.id().toString(), new Owner(vgpu.owner().kind().label(),
            vgpu.owner().id()), vgpu.memoryBytes(), vgpu.computeShare(), vgpu.mode().label(), vgpu.gpus().toString(),
            vgpu.carriers().stream().map(Carrier::label).sorted().toList(), vgpu.maxSessions(),
            vgpu.communication().label(), vgpu.swappable(), vgpu.rdma(), vgpu.expires(), vgpu.labels().map(),
            vgpu.origin().label(), vgpu.created(), vgpu.changed(),
            view.state().label(), view.problem(), view.placedGpus(), view.sessions(), startsWaiting, usedBytes,
            view.tokens(), swap, broker);
    }
}
