package io.hawser.broker.admin;

import io.hawser.broker.model.Device;
import io.hawser.broker.nvml.GpuMonitor;
import io.hawser.broker.nvml.GpuReading;
import io.hawser.broker.vgpu.VgpuTable;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import org.jboss.logging.Logger;

/** Tells the vGPUs which GPUs there are: those that workers have told of, without those that are lost. Event loop. */
public final class GpuWatch {
    private static final Logger LOG = Logger.getLogger(GpuWatch.class);

    private final VgpuTable table;
    private final Consumer<List<Device>> told;
    private final Function<String, GpuReading> readings;
    private final ToLongFunction<String> contextBytes;
    private List<Device> all = List.of();
    private List<Device> present = List.of();

    /** Watches none yet. */
    public GpuWatch(VgpuTable table, VgpuService service, GpuMonitor monitor) {
        this(table, service::gpus, monitor::reading, monitor::contextBytes);
    }

    /**
     * The same with other figures.
     *
     * @param told which GPUs there are from now on.
     * @param readings of a GPU by its UUID; a picture, nothing that waits.
     * @param contextBytes what a worker's context costs on a GPU by its UUID; 0 while nobody knows.
     */
    GpuWatch(VgpuTable table, Consumer<List<Device>> told, Function<String, GpuReading> readings,
        ToLongFunction<String> contextBytes) {
        this.table = table;
        this.told = told;
        this.readings = readings;
        this.contextBytes = contextBytes;
    }

    /** A worker has told of the GPUs. */
    public void told(List<Device> devices) {
        all = List.copyOf(devices);
        present = List.copyOf(devices);
        told.accept(present);
    }

    /** Looks whether one has gone or come back, and what contexts cost; now and then. */
    public void look() {
        if (all.isEmpty()) {
            return;
        }
        all.forEach(device -> table.contextCost(device.uuid(), contextBytes.applyAsLong(device.uuid())));
        List<Device> now = all.stream()
            .filter(device -> readings.apply(device.uuid()).health() != GpuReading.Health.LOST).toList();
        if (!now.equals(present)) {
            LOG.warnf("GPUs that vGPUs can be on: before=%s now=%s", uuids(present), uuids(now));
            present = now;
            told.accept(now);
        }
    }

    private static List<String> uuids(List<Device> devices) {
        return devices.stream().map(Device::uuid).toList();
    }
}
