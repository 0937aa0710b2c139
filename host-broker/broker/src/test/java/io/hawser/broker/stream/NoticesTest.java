package io.hawser.broker.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.broker.events.EventLog;
import io.hawser.broker.model.SwapInfo;
import io.hawser.broker.view.BrokerInfo;
import io.hawser.broker.view.GpuInfo;
import io.hawser.broker.view.RegionInfo;
import io.hawser.broker.view.VgpuInfo;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class NoticesTest {
    private static final Instant THEN = Instant.parse("2026-01-01T00:00:00Z");
    private final EventLog log = new EventLog(System::nanoTime);
    private final Notices notices = new Notices(log);

    private static GpuInfo gpu(String health, String detail) {
        return gpu(health, detail, false);
    }

    private static GpuInfo gpu(String health, String detail, boolean drained) {
        return new GpuInfo(0, "H200", "u-1", "nvidia", 1, 0, "", "9.0", 0, 0, 0, 0, health, detail, 5, 1L, 40, 100.0,
            drained, "");
    }

    private static VgpuInfo vgpu(String id, Instant changed, String state, String problem, int sessions) {
        return new VgpuInfo("v", id, new VgpuInfo.Owner("none", ""), 0, 100, "shared", "any", List.of("tcp"), 0, "none",
            false, false, null, Map.of(), "rest", THEN, changed, state, problem, List.of(), sessions, 0, 0, 0, null,
            "");
    }

    private static VgpuInfo swappable(String id, long residentBytes, long swappedBytes) {
        return new VgpuInfo("v", id, new VgpuInfo.Owner("none", ""), 8, 100, "shared", "any", List.of("tcp"), 0, "none",
            true, false, null, Map.of(), "rest", THEN, THEN, "ready", "", List.of(), 1, 0, 0, 0,
            new SwapInfo(swappedBytes == 0, residentBytes,
                swappedBytes, 1, 0, "", 0, 0, ""),
            "");
    }

    private static RegionInfo region(String state, String problem) {
        return new RegionInfo("r", "/dev/shm/r", "", 0, false, "v", 1, 1, 1, 0, 0, 1, state, problem, "");
    }

    private static BrokerInfo broker(String poolProblem) {
        return new BrokerInfo("", 1, "", THEN, "", "", "", "", 1, "", "", 1, "", "h2", false,
            new BrokerInfo.Pool(0, 0, 0, 0, 0, 0, "", 0), List.of(), "b", poolProblem);
    }

    private static Picture of(Object... things) {
        return new Picture(THEN, broker(""), only(GpuInfo.class, things), only(VgpuInfo.class, things), List.of(),
            only(RegionInfo.class, things));
    }

    private static <T> List<T> only(Class<T> type, Object... things) {
        return List.of(things).stream().filter(type::isInstance).map(type::cast).toList();
    }

    /** Kind, severity and text of the notices about the change from one picture to another. */
    private List<String> told(Picture before, Picture after) {
        notices.compare(before, after);
        return log.take().stream().map(e -> e.kind() + " " + e.severity() + " " + e.text()).toList();
    }

    @Test
    void shouldTellOfGpusThatFailGetLostAndComeBack() {
        Picture well = of(gpu("ok", ""));
        Picture lost = of(gpu("lost", "it fell off the bus"));
        assertEquals(List.of("gpu info GPU H200 is there: u-1"), told(of(), well));
        assertEquals(List.of("gpu warning GPU 0 H200 is failing: no worker (u-1)"), told(well, of(gpu("failing",
            "no worker"))));
        assertEquals(List.of("gpu error GPU 0 H200 is lost: it fell off the bus (u-1)"), told(well, lost));
        assertEquals(List.of(), told(lost, lost));
        assertEquals(List.of("gpu info GPU 0 H200 is ok (u-1)"), told(lost, well));
        assertEquals(List.of("gpu error GPU H200 is gone: u-1"), told(well, of()));
    }

    @Test
    void shouldTellOfVgpusButNotOfTheirUse() {
        Picture ready = of(vgpu("a", THEN, "ready", "", 0));
        assertEquals(List.of("vgpu info vGPU v was made"), told(of(), ready));
        assertEquals(List.of(), told(ready, of(vgpu("a", THEN, "ready", "", 3))));
        assertEquals(List.of("vgpu info vGPU v was changed"), told(ready, of(vgpu("a", THEN.plusSeconds(1), "ready",
            "", 0))));
        Picture without = of(vgpu("a", THEN, "unplaced", "no GPU has room", 0));
        assertEquals(List.of("vgpu warning vGPU v has no GPU: no GPU has room"), told(ready, without));
        assertEquals(List.of("vgpu info vGPU v has its GPUs again"), told(without, ready));
        assertEquals(List.of("vgpu info vGPU v was deleted and created again"),
            told(ready, of(vgpu("b", THEN, "ready", "",
                0))));
        assertEquals(List.of("vgpu info vGPU v was deleted"), told(ready, of()));
    }

    @Test
    void shouldTellOfMemoryThatLeavesItsGpuAndComesBack() {
        Picture resident = of(swappable("a", 8, 0));
        Picture swapped = of(swappable("a", 0, 8));
        assertEquals(List.of("swap info The memory of vGPU v has left its GPU: swappedBytes=8"),
            told(resident, swapped));
        assertEquals(List.of("swap info The memory of vGPU v is on its GPU again"), told(swapped, resident));
        assertEquals(List.of(), told(swapped, of(swappable("a", 0, 7))));
        assertEquals(List.of(), told(of(vgpu("a", THEN, "ready", "", 0)), swapped), "it has become swappable");
        assertEquals(List.of("vgpu info vGPU v was deleted and created again"),
            told(swapped, of(swappable("b", 8, 0))));
    }

    @Test
    void shouldTellOfRegions() {
        Picture serving = of(region("serving", ""));
        assertEquals(List.of("region info Region r is served"), told(of(), serving));
        assertEquals(List.of("region error Region r has failed: cut"), told(serving, of(region("failed", "cut"))));
        assertEquals(List.of("region info Region r is no longer served"), told(serving, of()));
    }

    @Test
    void shouldReportWhatKeepsTheBrokerFromItsPoolOnce() {
        Picture good = of();
        Picture bad = new Picture(THEN, broker("the database has been away for 3 s"), List.of(), List.of(), List.of(),
            List.of());
        Picture later =
            new Picture(THEN, broker("the database has been away for 14 s"), List.of(), List.of(), List.of(),
                List.of());
        assertEquals(List.of("admin error Pool: the database has been away for 3 s"), told(good, bad));
        assertEquals(List.of(), told(bad, later));
        assertEquals(List.of("admin info The broker is a member of its pool in good standing again"),
            told(later, good));
    }
}
