package io.hawser.broker.stream;

import io.hawser.broker.view.BrokerInfo;
import io.hawser.broker.view.GpuInfo;
import io.hawser.broker.view.RegionInfo;
import io.hawser.broker.view.SessionInfo;
import io.hawser.broker.view.VgpuInfo;
import java.time.Instant;
import java.util.List;

/** The state of the broker at one moment; see openapi.yml. */
public record Picture(Instant time, BrokerInfo broker, List<GpuInfo> gpus, List<VgpuInfo> vgpus,
    List<SessionInfo> sessions, List<RegionInfo> regions) {}
