package io.hawser.broker.admin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.broker.model.Device;
import io.hawser.broker.nvml.GpuReading;
import io.hawser.broker.vgpu.GpuLoad;
import io.hawser.broker.vgpu.Placement;
import io.hawser.broker.vgpu.VgpuTable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GpuWatchTest {
    private static final Device FIRST = new Device("GPU", "first", 1000, "", "");
    private static final Device SECOND = new Device("GPU", "second", 1000, "", "");

    private final VgpuTable table = new VgpuTable(Placement.of("spread", 1), 1, uuid -> false);
    private final Map<String, GpuReading.Health> health = new HashMap<>();
    private final List<List<Device>> told = new ArrayList<>();

    private GpuReading reading(String uuid) {
        return new GpuReading(uuid, health.getOrDefault(uuid, GpuReading.Health.OK), "", null, null, null, null,
            null, Map.of(), Map.of(), Map.of(), Map.of());
    }

    @Test
    void shouldTellWhenOneIsLostAndWhenItIsBack() {
        GpuWatch watch = new GpuWatch(table, devices -> {
            told.add(devices);
            table.settle(devices);
        }, this::reading, uuid -> uuid.equals("first") ? 100 : 0);
        watch.check();
        assertEquals(List.of(), told, "the watch must report nothing before a worker has reported its GPUs");
        watch.setDevices(List.of(FIRST, SECOND));
        watch.check();
        assertEquals(1, told.size(), "the watch must not repeat an unchanged list");
        assertEquals(List.of(100L, 0L), table.gpus().stream().map(GpuLoad::contextBytes).toList());
        health.put("first", GpuReading.Health.FAILING);
        watch.check();
        assertEquals(1, told.size(), "a failing GPU must stay in the list");
        health.put("first", GpuReading.Health.LOST);
        watch.check();
        watch.check();
        health.clear();
        watch.check();
        assertEquals(List.of(List.of(FIRST, SECOND), List.of(SECOND), List.of(FIRST, SECOND)), told);
    }
}
