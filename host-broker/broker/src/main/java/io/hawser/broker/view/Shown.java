package io.hawser.broker.view;

import java.util.List;

/** The objects that a broker shows the others of its pool. */
public record Shown(List<GpuInfo> gpus, List<VgpuInfo> vgpus, List<SessionInfo> sessions, List<RegionInfo> regions) {
    /** Nothing. */
    public static final Shown NOTHING = new Shown(List.of(), List.of(), List.of(), List.of());
}
