package io.hawser.broker.nvml;

import static io.hawser.broker.nvml.FakeNvml.GPU_0;
import static io.hawser.broker.nvml.FakeNvml.GPU_1;
import static java.util.Map.entry;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.nvml.GpuReading.Health;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NvmlSourceTest {
    @TempDir
    Path folder;

    @Test
    void shouldReadEveryFigureOfEachGpu() throws Exception {
        try (NvmlSource source = new NvmlSource(new FakeNvml(folder).library().toString(), Set::of)) {
            Map<String, GpuReading> readings = source.read();
            assertEquals(Set.of(GPU_0, GPU_1), readings.keySet());
            GpuReading first = readings.get(GPU_0);
            assertEquals(Health.OK, first.health());
            assertEquals(350, first.memoryUsedBytes(), "the figure must exclude memory that the driver reserves");
            assertEquals(1000, first.memoryTotalBytes());
            assertEquals(37, first.utilizationPercent());
            assertEquals(41, first.temperatureCelsius());
            assertEquals(71.5, first.powerWatts());
            assertEquals(100, first.processBytes().size(), "the source must grow its first buffer");
            assertEquals(1000099, first.processBytes().get(5000099L));
            assertEquals(101, readings.get(GPU_1).processBytes().size(), "the list must include the process of MPS");
            assertEquals(77, readings.get(GPU_1).processBytes().get(6000000L));
        }
    }

    @Test
    void shouldReadEachSensorThatTheGpuHas() throws Exception {
        try (NvmlSource source = new NvmlSource(new FakeNvml(folder).library().toString(), Set::of)) {
            Map<Sensor, Long> sensors = source.read().get(GPU_0).sensors();
            assertEquals("580.159.03", source.driverVersion());
            assertEquals(Map.ofEntries(entry(Sensor.MEMORY_UTILIZATION_PERCENT, 99L),
                entry(Sensor.POWER_MILLIWATTS, 71500L), entry(Sensor.ENFORCED_LIMIT_MILLIWATTS, 700000L),
                entry(Sensor.LIMIT_MILLIWATTS, 690000L), entry(Sensor.DEFAULT_LIMIT_MILLIWATTS, 680000L),
                entry(Sensor.MIN_LIMIT_MILLIWATTS, 200000L), entry(Sensor.MAX_LIMIT_MILLIWATTS, 710000L),
                entry(Sensor.ENERGY_MILLIJOULES, 5000000000L), entry(Sensor.GRAPHICS_MHZ, 1000L),
                entry(Sensor.SM_MHZ, 1001L), entry(Sensor.MEMORY_MHZ, 1002L), entry(Sensor.VIDEO_MHZ, 1003L),
                entry(Sensor.MAX_GRAPHICS_MHZ, 2000L), entry(Sensor.MAX_SM_MHZ, 2001L),
                entry(Sensor.MAX_MEMORY_MHZ, 2002L), entry(Sensor.PERFORMANCE_STATE, 2L),
                entry(Sensor.SUPPORTED_CLOCK_REASONS, 0x1ffL), entry(Sensor.MEMORY_CELSIUS, 50L),
                entry(Sensor.VOLATILE_CORRECTED_ERRORS, 100L), entry(Sensor.VOLATILE_UNCORRECTED_ERRORS, 101L),
                entry(Sensor.AGGREGATE_CORRECTED_ERRORS, 110L), entry(Sensor.AGGREGATE_UNCORRECTED_ERRORS, 111L)),
                sensors);
        }
    }

    @Test
    void shouldReadThePropertiesOfEachGpu() throws Exception {
        try (NvmlSource source = new NvmlSource(new FakeNvml(folder).library().toString(), Set::of)) {
            Map<String, GpuReading> readings = source.read();
            assertEquals(Map.of(Trait.ECC_MODE, 1L, Trait.PENDING_ECC_MODE, 0L, Trait.PCI_DEVICE_ID, 0x233510DEL,
                Trait.PCI_SUBSYSTEM_ID, 0x18BE10DEL, Trait.PCIE_GENERATION, 4L, Trait.GPU_PCIE_GENERATION, 5L,
                Trait.MAX_PCIE_WIDTH, 16L, Trait.PCIE_WIDTH, 8L), readings.get(GPU_0).traits());
            assertEquals(Map.of(GPU_1, "0166"), readings.get(GPU_0).peers());
            assertEquals(Map.of(GPU_0, "0166"), readings.get(GPU_1).peers());
        }
    }

    @Test
    void shouldLeaveUnknownWhatAnOldDriverDoesNotTell() throws Exception {
        FakeNvml old = new FakeNvml(folder, "FAKE_NVML_OLD");
        try (NvmlSource source = new NvmlSource(old.library().toString(), Set::of)) {
            GpuReading reading = source.read().get(GPU_0);
            assertEquals(Health.OK, reading.health());
            assertEquals(400, reading.memoryUsedBytes());
            assertEquals(37, reading.utilizationPercent());
            assertNull(reading.powerWatts());
            assertEquals(Map.of(), reading.traits());
            assertEquals(Map.of(GPU_1, "6666"), reading.peers());
            assertEquals(Map.of(5000000L, 111L), reading.processBytes(),
                "the map must omit a process of unknown memory");
        }
    }

    @Test
    void shouldTellOfAGpuThatWasLostBeforeItWasFirstLookedAt() throws Exception {
        FakeNvml nvml = new FakeNvml(folder);
        nvml.tell("lost0");
        try (NvmlSource source = new NvmlSource(nvml.library().toString(), () -> Set.of(GPU_0, GPU_1))) {
            for (int i = 0; i < 2; i++) {
                GpuReading reading = source.read().get(GPU_0);
                assertEquals(Health.LOST, reading.health());
                assertTrue(reading.healthDetail().startsWith("it fell off the bus: "), reading.healthDetail());
                assertEquals(Health.OK, source.read().get(GPU_1).health());
            }
            nvml.tell("");
            assertEquals(Health.OK, source.read().get(GPU_0).health(), "the GPU must be healthy again");
            assertEquals(350, source.read().get(GPU_0).memoryUsedBytes());
            nvml.tell("lost0");
            assertEquals(Health.LOST, source.read().get(GPU_0).health());
        }
    }

    @Test
    void shouldTellOnlyTheSensorThatIsMissing() throws Exception {
        FakeNvml nvml = new FakeNvml(folder);
        nvml.tell("nopower");
        try (NvmlSource source = new NvmlSource(nvml.library().toString(), Set::of)) {
            GpuReading reading = source.read().get(GPU_0);
            assertNull(reading.powerWatts());
            assertEquals(41, reading.temperatureCelsius());
        }
    }

    @Test
    void shouldTellWhichGpuIsLostAndWhenItIsBack() throws Exception {
        FakeNvml nvml = new FakeNvml(folder);
        try (NvmlSource source = new NvmlSource(nvml.library().toString(), Set::of)) {
            assertEquals(Health.OK, source.read().get(GPU_0).health());
            nvml.tell("lost0");
            GpuReading lost = source.read().get(GPU_0);
            assertEquals(Health.LOST, lost.health());
            assertTrue(lost.healthDetail().startsWith("it fell off the bus"), lost.healthDetail());
            assertNull(lost.memoryUsedBytes());
            assertEquals(Health.OK, source.read().get(GPU_1).health());
            nvml.tell("");
            assertEquals(Health.OK, source.read().get(GPU_0).health());
        }
    }

    @Test
    void shouldTakeErrorsOfTheGpuForIllnessAndThoseOfProgramsNot() throws Exception {
        FakeNvml nvml = new FakeNvml(folder);
        try (NvmlSource source = new NvmlSource(nvml.library().toString(), Set::of)) {
            nvml.tell("xid=31");
            assertEquals(Health.OK, source.read().get(GPU_1).health(),
                "an application's error (XID 31) must not count as a fault of the GPU");
            nvml.tell("xid=48");
            GpuReading failing = source.read().get(GPU_1);
            assertEquals(Health.FAILING, failing.health());
            assertEquals("the driver has reported XID 48", failing.healthDetail());
            assertEquals(350, failing.memoryUsedBytes(), "a failing GPU must still report its figures");
            assertEquals(Health.OK, source.read().get(GPU_0).health());
            nvml.tell("xid=79");
            assertEquals(Health.LOST, source.read().get(GPU_1).health());
            nvml.tell("xid=119");
            assertEquals("the driver has reported XID 79", source.read().get(GPU_1).healthDetail(),
                "the worst error must stay");
        }
    }

    @Test
    void shouldReadNothingWithoutTheLibrary() {
        try (NvmlSource source = new NvmlSource(folder.resolve("none.so").toString(), Set::of)) {
            assertEquals(Map.of(), source.read());
            assertEquals(Map.of(), source.read());
        }
    }
}
