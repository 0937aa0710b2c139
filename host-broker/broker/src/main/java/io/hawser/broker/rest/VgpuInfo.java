package io.hawser.broker.rest;

import java.time.Instant;
import java.util.List;

/** A vGPU; see openapi.yml. */
public record VgpuInfo(String name, String id, Owner owner, long memoryBytes, int computeShare, String mode,
    String gpus, List<String> carriers, int maxSessions, String origin, Instant created, Instant changed, String state,
    String problem, List<String> placedGpus, int sessions, long usedBytes, int tokens) {

    /** Whose it is; see openapi.yml. */
    public record Owner(String kind, String id) { }
}
