package io.hawser.broker.rest;

import io.hawser.broker.view.VgpuInfo;
import java.util.List;

/** A vGPU that is asked for; see openapi.yml. What is null has its default. */
public record VgpuRequest(String name, VgpuInfo.Owner owner, Long memoryBytes, Integer computeShare, String mode,
    String gpus, List<String> carriers, Integer maxSessions) {

    /** All but its name. */
    VgpuChange wishes() {
        return new VgpuChange(owner, null, memoryBytes, computeShare, mode, gpus, carriers, maxSessions);
    }
}
