package io.hawser.broker.model;

import java.util.List;

/**
 * A snapshot of a vGPU.
 *
 * @param problem why it is unplaced; empty otherwise.
 * @param placedGpus UUIDs of its GPUs, in the guests' order; empty while it has none.
 * @param sessions number of running and starting sessions.
 * @param tokens number of its tokens.
 */
public record VgpuView(Vgpu vgpu, VgpuState state, String problem, List<String> placedGpus, int sessions,
    int tokens) {}
