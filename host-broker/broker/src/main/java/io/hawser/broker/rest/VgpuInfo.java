package io.hawser.broker.rest;

import io.hawser.broker.Broker;
import io.hawser.broker.session.Carrier;
import io.hawser.broker.vgpu.Vgpu;
import io.hawser.broker.vgpu.VgpuView;
import java.time.Instant;
import java.util.List;

/** A vGPU; see openapi.yml. */
public record VgpuInfo(String name, String id, Owner owner, long memoryBytes, int computeShare, String mode,
    String gpus, List<String> carriers, int maxSessions, String origin, Instant created, Instant changed, String state,
    String problem, List<String> placedGpus, int sessions, long usedBytes, int tokens) {

    /** Whose it is; see openapi.yml. */
    public record Owner(String kind, String id) { }

    /**
     * As the interface shows it.
     *
     * @param usedBytes memory of its sessions.
     */
    public static VgpuInfo of(VgpuView view, long usedBytes) {
        Vgpu vgpu = view.vgpu();
        return new VgpuInfo(vgpu.name(), vgpu.id().toString(), new Owner(vgpu.owner().kind().label(),
            vgpu.owner().id()), vgpu.memoryBytes(), vgpu.computeShare(), vgpu.mode().label(), vgpu.gpus().toString(),
            vgpu.carriers().stream().map(Carrier::label).sorted().toList(), vgpu.maxSessions(), vgpu.origin().label(),
            vgpu.created(), vgpu.changed(), view.state().label(), view.problem(), view.placedGpus(), view.sessions(),
            usedBytes, view.tokens());
    }

    /** The vGPUs by name, from pictures; any thread. */
    public static List<VgpuInfo> list(Broker broker) {
        return broker.vgpus().list().stream()
            .map(view -> of(view, broker.ledgers().usedBytes(view.vgpu().name()))).toList();
    }
}
