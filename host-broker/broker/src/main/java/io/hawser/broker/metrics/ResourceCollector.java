package io.hawser.broker.metrics;

import io.hawser.broker.model.SwapInfo;
import io.hawser.broker.model.WorkerStats;
import io.hawser.broker.view.GpuInfo;
import io.hawser.broker.view.PeerInfo;
import io.hawser.broker.view.VgpuInfo;
import io.hawser.shm.wire.RecordLayout;
import io.prometheus.client.Collector;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;

/** Metrics of each GPU and each vGPU, read at each request: a removed GPU or vGPU no longer appears. */
final class ResourceCollector extends Collector {
    /** Limit of vGPUs with labels of their own, by name; more would burden the monitoring. */
    static final int MAX_VGPUS = 1000;
    private static final List<String> GPU_HEALTH = List.of("ok", "failing", "lost");
    private static final List<String> VGPU_STATES = List.of("ready", "waiting", "unplaced");

    private final Sources sources;
    private final String version;
    private final BooleanSupplier ready;
    private final VgpuTotals totals;

    ResourceCollector(Sources sources, String version, BooleanSupplier ready, VgpuTotals totals) {
        this.sources = sources;
        this.version = version;
        this.ready = ready;
        this.totals = totals;
    }

    @Override
    public List<MetricFamilySamples> collect() {
        return families().stream().map(Family::samples).toList();
    }

    /** All metrics with their present samples. */
    List<Family> families() {
        List<Family> families = new ArrayList<>();
        families.add(Family.gauge("hawser_build_info", "The version of the broker", "version", "protocol", "backend")
            .add(1, version, String.valueOf(RecordLayout.PROTOCOL_VERSION), sources.pools().state().backend()));
        families.add(Family.gauge("hawser_ready", "Whether a new guest can expect a session")
            .add(ready.getAsBoolean() ? 1 : 0));
        families.addAll(gpus(sources.gpus().list()));
        families.addAll(vgpus(sources.vgpus().list()));
        families.addAll(brokers(sources.brokers().get()));
        return families;
    }

    private static List<Family> brokers(List<PeerInfo> all) {
        Family up =
            Family.gauge("hawser_broker_up", "Whether a broker of the pool has had a heartbeat in time, seen from"
                + " this one", "broker");
        Family silence =
            Family.gauge("hawser_broker_silence_seconds", "Time since the last heartbeat of a broker of the"
                + " pool", "broker");
        Family gpus = Family.gauge("hawser_broker_gpus", "GPUs of a broker of the pool", "broker");
        Family memory = Family.gauge("hawser_broker_memory_bytes", "Device memory of a broker of the pool", "broker");
        Family vgpus = Family.gauge("hawser_broker_vgpus", "vGPUs of a broker of the pool", "broker");
        for (PeerInfo one : all) {
            up.add(one.state().equals("ready") ? 1 : 0, one.name());
            silence.add(one.silentMs() / 1000.0, one.name());
            gpus.add(one.gpus(), one.name());
            memory.add(one.totalBytes(), one.name());
            vgpus.add(one.vgpus(), one.name());
        }
        return List.of(up, silence, gpus, memory, vgpus);
    }

    private static List<Family> gpus(List<GpuInfo> gpus) {
        Family info = Family.gauge("hawser_gpu_info", "The GPUs", "gpu", "index", "name", "backend");
        Family health = Family.gauge("hawser_gpu_health", "1 for the present health of a GPU, else 0", "gpu", "health");
        Family memory = Family.gauge("hawser_gpu_memory_bytes", "Device memory: total, used by all processes (driver),"
            + " held by sessions, reserved for vGPUs, and used by one worker's context", "gpu", "kind");
        Family utilization = Family.gauge("hawser_gpu_utilization_ratio",
            "Part of the last sample period in which a kernel ran, 0 to 1", "gpu");
        Family temperature = Family.gauge("hawser_gpu_temperature_celsius", "Temperature of the chip", "gpu");
        Family power = Family.gauge("hawser_gpu_power_watts", "Power of the whole board", "gpu");
        Family sessions = Family.gauge("hawser_gpu_sessions", "Sessions that have the GPU", "gpu");
        Family users = Family.gauge("hawser_gpu_vgpus", "vGPUs that are on the GPU", "gpu");
        for (GpuInfo gpu : gpus) {
            info.add(1, gpu.uuid(), String.valueOf(gpu.index()), gpu.name(), gpu.backend());
            GPU_HEALTH.forEach(h -> health.add(h.equals(gpu.health()) ? 1 : 0, gpu.uuid(), h));
            memory.add(gpu.totalBytes(), gpu.uuid(), "total").add(gpu.memoryUsedBytes(), gpu.uuid(), "used")
                .add(gpu.usedBytes(), gpu.uuid(), "sessions").add(gpu.reservedBytes(), gpu.uuid(), "reserved")
                .add(gpu.contextBytes(), gpu.uuid(), "context");
            utilization.add(gpu.utilizationPercent() == null ? null : gpu.utilizationPercent() / 100.0, gpu.uuid());
            temperature.add(gpu.temperatureCelsius(), gpu.uuid());
            power.add(gpu.powerWatts(), gpu.uuid());
            sessions.add(gpu.sessions(), gpu.uuid());
            users.add(gpu.vgpus(), gpu.uuid());
        }
        return List.of(info, health, memory, utilization, temperature, power, sessions, users);
    }

    private List<Family> vgpus(List<VgpuInfo> all) {
        Family count = Family.gauge("hawser_vgpus", "vGPUs by state", "state");
        VGPU_STATES.forEach(s -> count.add(all.stream().filter(v -> v.state().equals(s)).count(), s));
        Family memory = Family.gauge("hawser_vgpu_memory_bytes",
            "Device memory over its GPUs: its quota (0 for best effort) and the use of its sessions", "vgpu", "kind");
        Family sessions = Family.gauge("hawser_vgpu_sessions", "Sessions of the vGPU", "vgpu");
        Family starts = Family.gauge("hawser_vgpu_starts_waiting", "Sessions of the vGPU that wait for a worker",
            "vgpu");
        Family usable = Family.gauge("hawser_vgpu_ready", "Whether the vGPU has its GPUs", "vgpu");
        Family calls = Family.counter("hawser_vgpu_calls", "Records received from its guests", "vgpu");
        Family waits = Family.counter("hawser_vgpu_synchronous_round_trips", "Calls whose caller waited", "vgpu");
        Family kernels = Family.counter("hawser_vgpu_kernels", "Kernels launched", "vgpu");
        Family gpuTime = Family.counter("hawser_vgpu_gpu_time_seconds", "Time with kernels on the GPU", "vgpu");
        Family waited = Family.counter("hawser_vgpu_turn_wait_seconds", "Time waited for its turn", "vgpu");
        Family bytes = Family.counter("hawser_vgpu_bytes", "Bytes of records, seen from the worker", "vgpu",
            "direction");
        Family resident = Family.gauge("hawser_vgpu_resident_bytes",
            "Memory of a swappable vGPU that is on its GPU", "vgpu");
        Family swapped = Family.gauge("hawser_vgpu_swapped_bytes",
            "Memory of a swappable vGPU that is in the memory of the host", "vgpu");
        Family swaps = Family.counter("hawser_vgpu_swaps", "How many times a swappable vGPU's memory has left its GPU",
            "vgpu");
        Family deep = Family.gauge("hawser_vgpu_deep_sessions",
            "Sessions of a swappable vGPU that have left their GPU wholly", "vgpu");
        Family deepSwaps = Family.counter("hawser_vgpu_deep_swaps",
            "How many times a session of a swappable vGPU has left its GPU wholly", "vgpu");
        Family swapWait = Family.counter("hawser_vgpu_swap_wait_seconds",
            "Time in which sessions of a swappable vGPU waited for their memory", "vgpu");
        List<VgpuInfo> shown = all.stream().sorted(Comparator.comparing(VgpuInfo::name)).limit(MAX_VGPUS).toList();
        Map<String, WorkerStats> done = totals.totals(shown.stream().map(VgpuInfo::name).toList(),
            sources.sessions().list());
        for (VgpuInfo vgpu : shown) {
            String name = vgpu.name();
            memory.add(vgpu.memoryBytes() * (double) vgpu.placedGpus().size(), name, "quota")
                .add(vgpu.usedBytes(), name, "used");
            sessions.add(vgpu.sessions(), name);
            starts.add(vgpu.startsWaiting(), name);
            usable.add(vgpu.state().equals("ready") ? 1 : 0, name);
            WorkerStats sum = done.get(name);
            calls.add(sum.calls(), name);
            waits.add(sum.roundTrips(), name);
            kernels.add(sum.kernels(), name);
            gpuTime.add(sum.gpuTimeMs() / 1000.0, name);
            waited.add(sum.waitedMs() / 1000.0, name);
            bytes.add(sum.bytesIn(), name, "in").add(sum.bytesOut(), name, "out");
            SwapInfo swap = vgpu.swap();
            if (swap != null) {
                resident.add(swap.residentBytes(), name);
                swapped.add(swap.swappedBytes(), name);
                swaps.add(swap.swaps(), name);
                deep.add(swap.deepSessions(), name);
                deepSwaps.add(swap.deepSwaps(), name);
                swapWait.add(swap.waitedMs() / 1000.0, name);
            }
        }
        return List.of(count, memory, sessions, starts, usable, calls, waits, kernels, gpuTime, waited, bytes,
            resident, swapped, swaps, deep, deepSwaps, swapWait);
    }
}
