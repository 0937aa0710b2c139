package io.hawser.broker.stream;

import io.hawser.broker.rest.BrokerInfo;
import io.hawser.broker.rest.GpuInfo;
import io.hawser.broker.rest.RegionInfo;
import io.hawser.broker.rest.SessionInfo;
import io.hawser.broker.rest.VgpuInfo;
import java.time.Instant;
import java.util.List;

/** Everything at one moment; see openapi.yml. */
public record Picture(Instant time, BrokerInfo broker, List<GpuInfo> gpus, List<VgpuInfo> vgpus,
    List<SessionInfo> sessions, List<RegionInfo> regions) { }
