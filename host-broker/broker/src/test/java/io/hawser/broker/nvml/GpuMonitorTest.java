package io.hawser.broker.nvml;

import static io.hawser.broker.nvml.FakeNvml.GPU_0;
import static io.hawser.broker.nvml.FakeNvml.GPU_1;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.TestBroker;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.WorkerStats;
import io.hawser.broker.nvml.GpuReading.Health;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GpuMonitorTest {
    @TempDir
    Path folder;

    private static GpuMonitor.Watched watched(List<SessionView> sessions, List<Integer> idle) {
        return new GpuMonitor.Watched() {
            @Override
            public List<Device> devices() {
                return List.of(new Device("one", GPU_0, 5000, "", ""),
                    new Device("two", GPU_1, 6000, "", ""));
            }

            @Override
            public List<SessionView> sessions() {
                return sessions;
            }

            @Override
            public List<Integer> idleWorkerPids() {
                return idle;
            }
        };
    }

    private static SessionView session(long pid, long bytes, List<String> gpus) {
        return new SessionView(1, new Guest("k", "default", Carrier.TCP, "peer", 1, "program", "host"), pid,
            Instant.now(), SessionState.RUNNING, gpus, 0, new WorkerStats(0, 0, 0, 0, 0, 0, bytes, 0, 0, 0));
    }

    @Test
    void shouldPublishWhatProcessesAndContextsTake() throws Exception {
        FakeNvml nvml = new FakeNvml(folder);
        GpuMonitor monitor = new GpuMonitor(watched(List.of(), List.of(5000003, 5000001, 9)));
        assertEquals(Health.OK, monitor.reading(GPU_0).health(), "a GPU without a reading must count as healthy");
        monitor.start(() -> new NvmlSource(nvml.library().toString(), Set::of));
        try {
            TestBroker.await("a reading", () -> monitor.reading(GPU_0).memoryUsedBytes() != null);
            assertEquals(OptionalLong.of(1000042), monitor.processBytes(GPU_0, 5000042));
            assertEquals(OptionalLong.empty(), monitor.processBytes(GPU_0, 9));
            assertEquals(OptionalLong.empty(), monitor.processBytes("other", 5000042));
            assertEquals(1000003, monitor.contextBytes(GPU_0),
                "the context's cost must be the largest memory of an idle worker");
            nvml.tell("lost0");
            TestBroker.await("the loss", () -> monitor.reading(GPU_0).health() == Health.LOST);
            assertEquals(1000003, monitor.contextBytes(GPU_0), "the cost must keep its last value");
        } finally {
            monitor.stop();
        }
    }

    @Test
    void shouldNotShowFiguresOfADriverThatHangs() throws Exception {
        FakeNvml nvml = new FakeNvml(folder);
        GpuMonitor monitor = new GpuMonitor(watched(List.of(), List.of()), Duration.ofSeconds(3));
        monitor.start(() -> new NvmlSource(nvml.library().toString(), Set::of));
        try {
            TestBroker.await("a reading", () -> monitor.reading(GPU_0).memoryUsedBytes() != null);
            nvml.tell("hang");
            TestBroker.await("the report of the silent driver",
                () -> monitor.reading(GPU_0).health() == Health.FAILING);
            assertTrue(monitor.reading(GPU_0).healthDetail().startsWith("the driver has not answered for "));
            assertNull(monitor.reading(GPU_0).memoryUsedBytes());
            nvml.tell("");
            TestBroker.await("the driver's answer", () -> monitor.reading(GPU_0).health() == Health.OK);
        } finally {
            nvml.tell("");
            monitor.stop();
        }
    }

    @Test
    void shouldTakeProcessorsOfWorkersForUtilization() {
        long self = ProcessHandle.current().pid();
        SoftwareSource source = new SoftwareSource(watched(List.of(), List.of())::devices,
            () -> List.of(session(self, 700, List.of(GPU_1)), session(0, 9, List.of(GPU_0))));
        GpuReading first = source.read().get(GPU_1);
        assertEquals(0, first.utilizationPercent(), "the first reading must have no rate");
        assertEquals(700, first.memoryUsedBytes());
        assertEquals(6000, first.memoryTotalBytes());
        assertNull(first.temperatureCelsius());
        // Uses processor time, so that the rate since the last reading is not zero.
        long untilNs = ProcessHandle.current().info().totalCpuDuration().orElseThrow().toNanos()
            + TimeUnit.SECONDS.toNanos(1);
        while (ProcessHandle.current().info().totalCpuDuration().orElseThrow().toNanos() < untilNs) {
            Thread.onSpinWait();
        }
        GpuReading second = source.read().get(GPU_1);
        assertTrue(second.utilizationPercent() > 0 && second.utilizationPercent() <= 100,
            "percent=" + second.utilizationPercent());
        assertEquals(0, source.read().get(GPU_0).utilizationPercent());
    }
}
