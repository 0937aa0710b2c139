package io.hawser.broker.status;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.machine.MathLibraries;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.SwapInfo;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.WorkerStats;
import io.hawser.broker.nvml.GpuReading;
import io.hawser.broker.nvml.Sensor;
import io.hawser.broker.nvml.Trait;
import io.hawser.broker.vgpu.Placement;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.broker.vgpu.VgpuTable;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class StatusTextTest {
    private static final int ROOM = 3520; // RegionLayout.HEADER_STATUS_BYTES
    private static final String UUID = "aaaaaaaa-0000-4000-8000-000000000001";
    private static final String OTHER = "aaaaaaaa-0000-4000-8000-000000000002";
    private static final Map<Sensor, Long> SENSORS = Map.of(Sensor.POWER_MILLIWATTS, 71500L, Sensor.SM_MHZ, 1980L,
        Sensor.CLOCK_REASONS, 4L);

    private final List<Device> devices = new ArrayList<>(List.of(new Device("NVIDIA H200", UUID, 1000, "0000:19:00.0",
        "9.0")));
    private static final List<MathLibraries.Library> LIBRARIES = List.of(
        new MathLibraries.Library("libcublas.so.13", Path.of("/a/libcublas.so.13"), "13.1.0.3"),
        new MathLibraries.Library("libcudnn.so.9", Path.of("/a/libcudnn.so.9"), null));

    private final List<SessionView> sessions = new ArrayList<>();
    private final VgpuTable table = new VgpuTable(Placement.of("least-loaded", 1), 1, uuid -> false);

    private String status(String mode, String gpus) throws Exception {
        return status(mode, gpus, 0);
    }

    private String status(String mode, String gpus, long memoryBytes) throws Exception {
        table.settle(devices);
        table.add(table.plan(new VgpuDraft(null, null, memoryBytes, 100, mode, gpus, null, null).create("a",
            Origin.REST, Vgpu.now())));
        return status("a");
    }

    private String status(String vgpu) {
        return new StatusText(table, () -> sessions, new StatusText.Gpus(() -> devices, StatusTextTest::reading,
            () -> "580.159.03", (name, uuid) -> 300, name -> 37), LIBRARIES,
            name -> new SwapInfo(false, name.length(), 20, 3, 4000, "", 0, 0, "")).of(vgpu, ROOM);
    }

    @Test
    void shouldTellWhereTheMemoryOfASwappableVgpuIs() throws Exception {
        assertEquals("", line(status("shared", "any", 500), "swap"));
        table.add(table.plan(new VgpuDraft(null, null, 500L, null, null, null, null, null, null, true).create("moves",
            Origin.REST, Vgpu.now())));
        assertEquals("swap\t5\t20\t3\t4000", line(status("moves"), "swap"));
    }

    @Test
    void shouldListTheMathLibrariesWithTheirVersions() throws Exception {
        assertEquals(List.of("library\tlibcublas.so.13\t13.1.0.3", "library\tlibcudnn.so.9\t-"),
            status("shared", "any").lines().filter(line -> line.startsWith("library")).toList());
    }

    private static GpuReading reading(String uuid) {
        Map<Trait, Long> traits = Map.of(Trait.ECC_MODE, 1L, Trait.PCI_DEVICE_ID, 0x233510DEL, Trait.MAX_PCIE_WIDTH,
            16L);
        Map<String, String> peers = uuid.equals(UUID) ? Map.of(OTHER, "0011") : Map.of();
        return new GpuReading(uuid, GpuReading.Health.OK, "", 900L, 1004L, 93, 41, 71.5, SENSORS, traits, peers,
            Map.of());
    }

    private static String line(String status, String kind) {
        return status.lines().filter(l -> l.startsWith(kind + "\t")).findFirst().orElse("");
    }

    @Test
    void shouldTellASharedVgpuNothingOfTheWholeGpu() throws Exception {
        String status = status("shared", "any");
        assertEquals("gpu\t0\tNVIDIA H200\t" + UUID + "\t1000\t300\t37\t-\t-\t0000:19:00.0\t9.0", line(status, "gpu"));
        assertEquals("", line(status, "sensors"));
        assertEquals("driver\t580.159.03", line(status, "driver"));
    }

    @Test
    void shouldTellAnExclusiveVgpuEachFigure() throws Exception {
        String status = status("exclusive", "any");
        assertEquals("gpu\t0\tNVIDIA H200\t" + UUID + "\t1000\t300\t93\t41\t72\t0000:19:00.0\t9.0",
            line(status, "gpu"));
        List<String> fields = Arrays.asList(line(status, "sensors").split("\t"));
        assertEquals(2 + Sensor.values().length, fields.size());
        assertEquals("71500", fields.get(2 + Sensor.POWER_MILLIWATTS.ordinal()));
        assertEquals("1980", fields.get(2 + Sensor.SM_MHZ.ordinal()));
        assertEquals("4", fields.get(2 + Sensor.CLOCK_REASONS.ordinal()));
        assertEquals("-", fields.get(2 + Sensor.ENERGY_MILLIJOULES.ordinal()));
    }

    @Test
    void shouldCountTheDriversMemoryWithAWholeGpuOnly() throws Exception {
        assertEquals("traits\t0\t4\t1\t-\t590680286\t-\t5555\t-\t-\t16\t-", line(status("shared", "any"), "traits"));
        table.remove("a");
        assertEquals("4", line(status("exclusive", "any", 1000), "traits").split("\t")[2]);
        table.remove("a");
        String part = status("exclusive", "any", 999);
        assertEquals("999", line(part, "gpu").split("\t")[4]);
        assertEquals("0", line(part, "traits").split("\t")[2], "a quota is the tenant's alone");
    }

    @Test
    void shouldTellTheAccessBetweenTheGpusOfAVgpu() throws Exception {
        devices.add(new Device("NVIDIA H200", OTHER, 1000, "0000:1a:00.0", "9.0"));
        List<String> traits = status("shared", "all").lines().filter(l -> l.startsWith("traits\t")).toList();
        assertEquals(2, traits.size());
        assertTrue(traits.get(0).contains("\t55550011\t"), traits::toString);
        assertTrue(traits.get(1).contains("\t55555555\t"), traits::toString);
    }

    @Test
    void shouldListTheProcessesOfSessionsThatDoNotFit() throws Exception {
        for (int i = 0; i < 64; i++) {
            sessions.add(session(i));
        }
        String status = status("shared", "any");
        assertTrue(status.length() <= ROOM, "length=" + status.length());
        long whole = status.lines().filter(l -> l.startsWith("session\t")).count();
        long processes = status.lines().filter(l -> l.startsWith("process\t")).count();
        assertEquals(64, whole + processes);
        assertTrue(whole > 10 && processes > 10, "whole=" + whole);
        assertEquals("more\t" + processes, line(status, "more"));
        assertTrue(status.contains("process\t4000063\thost\t0\n"), status);
    }

    private static SessionView session(int i) {
        return new SessionView(i, new Guest("", "a", Carrier.SHM, "", 4_000_000 + i, "program", "host"), 1,
            Instant.now(), SessionState.RUNNING, List.of(UUID), 0, WorkerStats.NONE);
    }

    @Test
    void shouldFitAHeaderWithManyGpusAndSessions() throws Exception {
        for (int i = 2; i <= 16; i++) {
            devices.add(new Device("A GPU with a name as long as any that a driver gives it, or longer",
                "aaaaaaaa-0000-4000-8000-0000000000" + (10 + i), 1L << 50, "0000:19:00.0", "9.0"));
        }
        for (int i = 0; i < 100; i++) {
            sessions.add(session(i));
        }
        String status = status("exclusive", "all");
        assertTrue(status.length() <= ROOM, "length=" + status.length());
        assertEquals(16, status.lines().filter(l -> l.startsWith("gpu\t")).count());
        assertTrue(!line(status, "more").isEmpty(), status);
    }
}
