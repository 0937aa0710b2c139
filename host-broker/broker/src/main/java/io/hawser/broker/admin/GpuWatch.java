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

/** Passes the usable GPUs to the vGPUs: all GPUs that workers have reported, except lost ones. Event loop only. */
public final class GpuWatch {
    private static final Logger LOG = Logger.getLogger(GpuWatch.class);

    private final VgpuTable table;
    private final Consumer<List<Device>> usable;
    private final Function<String, GpuReading> readings;
    private final ToLongFunction<String> contextBytes;
    private List<Device> all = List.of();
    private List<Device> present = List.of();

    /** Starts with no GPU. */
    public GpuWatch(VgpuTable table, VgpuService service, GpuMonitor monitor) {
        this(table, service::setGpus, monitor::reading, monitor::contextBytes);
    }

    /**
     * For tests: takes its readings from the given functions.
     *
     * @param usable receives the usable GPUs after each change.
     * @param readings the latest reading of a GPU by its UUID; must not wait.
     * @param contextBytes the memory of a worker's context on a GPU by its UUID; 0 while it is unknown.
     */
    GpuWatch(VgpuTable table, Consumer<List<Device>> usable, Function<String, GpuReading> readings,
        ToLongFunction<String> contextBytes) {
        this.table = table;
        this.usable = usable;
        this.readings = readings;
        this.contextBytes = contextBytes;
    }

    /** Sets the GPUs that a worker has reported. */
    public void setDevices(List<Device> devices) {
        all = List.copyOf(devices);
        present = List.copyOf(devices);
        usable.accept(present);
    }

    /** Updates the contexts' memory, and passes the usable GPUs on when a GPU was lost or came back. Periodic. */
    public void check() {
        if (all.isEmpty()) {
            return;
        }
        all.forEach(device -> table.setContextBytes(device.uuid(), contextBytes.applyAsLong(device.uuid())));
        List<Device> now = all.stream()
            .filter(device -> readings.apply(device.uuid()).health() != GpuReading.Health.LOST).toList();
        if (!now.equals(present)) {
            LOG.warnf("the usable GPUs have changed: before=%s now=%s", uuids(present), uuids(now));
            present = now;
            usable.accept(now);
        }
    }

    private static List<String> uuids(List<Device> devices) {
        return devices.stream().map(Device::uuid).toList();
    }
}
