package io.hawser.broker.rest;

import io.hawser.broker.view.VgpuInfo;
import java.util.List;
import java.util.Map;

/** A request for a vGPU; see openapi.yml. A null field selects the default. */
public record VgpuRequest(String name, VgpuInfo.Owner owner, Long memoryBytes, Integer computeShare, String mode,
    String gpus, List<String> carriers, Integer maxSessions, String communication,
    Boolean swappable, Boolean rdma, String expires, Map<String, String> labels, String broker) {

    /** All fields except the name. */
    VgpuChange fields() {
        return new VgpuChange(owner, null, memoryBytes, computeShare, mode, gpus, carriers, maxSessions,
            communication, swappable, rdma, expires, labels);
    }
}
