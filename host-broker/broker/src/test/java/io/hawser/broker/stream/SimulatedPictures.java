package io.hawser.broker.stream;

import io.hawser.broker.rest.BrokerResource;
import io.hawser.broker.view.SessionInfo;
import io.hawser.broker.view.VgpuInfo;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.inject.Alternative;
import jakarta.inject.Inject;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** A large simulated broker for {@link StreamBenchmark}. All its sessions are busy, so each picture changes them. */
@Alternative
@ApplicationScoped
public class SimulatedPictures implements PictureSource {
    static final int VGPUS = 1000;
    static final int SESSIONS = 200;

    private final Random random = new Random(1);
    private final Instant started = Instant.now();
    private long second;

    @Inject
    BrokerResource broker;

    @Override
    public Picture take() {
        second++;
        List<SessionInfo> sessions = new ArrayList<>();
        for (int i = 1; i <= SESSIONS; i++) {
            long calls = second * (1000 + 37L * i) + random.nextInt(500);
            sessions.add(new SessionInfo(i, "tenant-" + i, "tcp", "key-" + i, "running", started,
                "10.0.0." + i + ":5000", "guest-" + i, "python3", 1000 + i, 2000 + i, List.of("u-1"),
                1L << 33, new SessionInfo.Statistics(calls, calls, calls / 20, calls * 700, calls * 90, 0,
                    (1L << 30) + random.nextInt(1 << 20), calls / 2,
                    second * 400, second * 90),
                ""));
        }
        List<VgpuInfo> vgpus = new ArrayList<>();
        for (int i = 1; i <= VGPUS; i++) {
            boolean busy = i <= SESSIONS;
            vgpus.add(new VgpuInfo("tenant-" + i, "00000000-0000-4000-8000-%012d".formatted(i),
                new VgpuInfo.Owner("host", "guest-" + i), 1L << 33, 50, "shared", "any", List.of("shm", "tcp"), 4,
                "none", false, false, null, Map.of(), "rest", started, started, "ready", "",
                List.of("u-1"), busy ? 1 : 0, 0, busy ? sessions.get(i - 1).statistics().deviceBytes() : 0, 1, null,
                ""));
        }
        return new Picture(Instant.now(), broker.getBroker(), broker.listGpus(null), vgpus, sessions,
            broker.listRegions(null));
    }
}
