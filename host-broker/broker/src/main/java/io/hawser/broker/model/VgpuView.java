package io.hawser.broker.model;

import java.util.List;

/**
 * A vGPU at one moment.
 *
 * @param problem why it is unplaced; empty while it is not.
 * @param placedGpus UUIDs of its GPUs, in the order in which guests see them; empty while it has none.
 * @param sessions that run or are about to.
 * @param tokens that open it.
 */
public record VgpuView(Vgpu vgpu, VgpuState state, String problem, List<String> placedGpus, int sessions,
    int tokens) { }
