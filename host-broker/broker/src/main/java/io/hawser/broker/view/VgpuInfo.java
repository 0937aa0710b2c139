package io.hawser.broker.view;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.SwapInfo;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuView;
import java.time.Instant;
import java.util.List;

/** A vGPU; see openapi.yml. */
public record VgpuInfo(String name, String id, Owner owner, long memoryBytes, int computeShare, String mode,
    String gpus, List<String> carriers, int maxSessions, String communication, boolean swappable, boolean rdma,
    String origin,
    Instant created, Instant changed, String state, String problem, List<String> placedGpus, int sessions,
    int startsWaiting, long usedBytes, int tokens, SwapInfo swap) {

    /** The owner of a vGPU; see openapi.yml. */
    public record Owner(String kind, String id) {}

    /**
     * Converts a vGPU to its form in the REST interface.
     *
     * @param startsWaiting its sessions that wait for a worker.
     * @param usedBytes memory of its sessions.
     * @param swap where its memory is; null if it is not swappable.
     */
    static VgpuInfo of(VgpuView view, int startsWaiting, long usedBytes, SwapInfo swap) {
        Vgpu vgpu = view.vgpu();
        return new VgpuInfo(vgpu.name(), vgpu.id().toString(), new Owner(vgpu.owner().kind().label(),
            vgpu.owner().id()), vgpu.memoryBytes(), vgpu.computeShare(), vgpu.mode().label(), vgpu.gpus().toString(),
            vgpu.carriers().stream().map(Carrier::label).sorted().toList(), vgpu.maxSessions(),
            vgpu.communication().label(), vgpu.swappable(), vgpu.rdma(), vgpu.origin().label(), vgpu.created(),
            vgpu.changed(),
            view.state().label(), view.problem(), view.placedGpus(), view.sessions(), startsWaiting, usedBytes,
            view.tokens(), swap);
    }
}
