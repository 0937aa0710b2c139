package io.hawser.broker.metrics;

import io.hawser.broker.Broker;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.WorkerStats;
import io.hawser.broker.region.RegionView;
import io.hawser.broker.view.VgpuInfo;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import io.micrometer.prometheus.PrometheusMeterRegistry;
import io.prometheus.client.CollectorRegistry;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;

/**
 * The metrics of {@code /q/metrics}. The names here are Micrometer's; Prometheus shows {@code hawser_calls_total} and
 * so on. Totals include ended sessions, so they never shrink while the broker runs.
 */
@ApplicationScoped
public class BrokerMetrics implements Broker.Listener {
    private final MeterRegistry registry;
    private final Map<Carrier, Map<Refusal, Counter>> refused = new EnumMap<>(Carrier.class);
    private final Map<Carrier, Timer> sessionStart = new EnumMap<>(Carrier.class);
    private final Timer workerStart;
    private final Counter workerFailures;
    private final VgpuTotals vgpuTotals = new VgpuTotals();

    /** Registers the metrics that need no broker. */
    @Inject
    public BrokerMetrics(MeterRegistry registry) {
        this.registry = registry;
        for (Carrier carrier : Carrier.values()) {
            Map<Refusal, Counter> counters = new EnumMap<>(Refusal.class);
            for (Refusal refusal : Refusal.values()) {
                counters.put(refusal, Counter.builder("hawser.refused.connections")
                    .description("Rejected connections and claims of slots").tag("carrier", carrier.label())
                    .tag("reason", refusal.label()).register(registry));
            }
            refused.put(carrier, counters);
            sessionStart.put(carrier, Timer.builder("hawser.session.start")
                .description("Time from a guest's connect, or the first look at its claim, until a worker has it")
                .tag("carrier", carrier.label())
                .serviceLevelObjectives(Duration.ofMillis(1), Duration.ofMillis(5), Duration.ofMillis(20),
                    Duration.ofMillis(100), Duration.ofMillis(600), Duration.ofSeconds(3)).register(registry));
        }
        workerFailures = Counter.builder("hawser.worker.start.failures")
            .description("Workers that failed before they had a session").register(registry);
        workerStart = Timer.builder("hawser.worker.start").description("Time from a worker's start until it is ready")
            .serviceLevelObjectives(Duration.ofMillis(200), Duration.ofMillis(400), Duration.ofMillis(600),
                Duration.ofSeconds(1), Duration.ofSeconds(3), Duration.ofSeconds(10)).register(registry);
    }

    /**
     * Registers the metrics of a broker, once.
     *
     * @param version of the broker.
     * @param vgpus a snapshot of the vGPUs, from any thread.
     * @param ready whether a new guest can expect a session.
     */
    public void watch(Broker broker, String version, Supplier<List<VgpuInfo>> vgpus, BooleanSupplier ready) {
        new ResourceCollector(broker, version, vgpus, ready, vgpuTotals).register(prometheus(registry));
        total(broker, "hawser.calls", "Records received from guests", WorkerStats::calls);
        total(broker, "hawser.synchronous.round.trips", "Calls whose caller waited for the reply",
            WorkerStats::roundTrips);
        total(broker, "hawser.refused.records", "Records that no correct guest library sends",
            WorkerStats::refusedRecords);
        total(broker, "hawser.kernels", "Kernels launched", WorkerStats::kernels);
        time(broker, "hawser.gpu.time", "Time in which sessions had kernels on the GPU", WorkerStats::gpuTimeMs);
        time(broker, "hawser.turn.wait", "Time in which kernels waited for their vGPU's turn", WorkerStats::waitedMs);
        bytes(broker, "in", WorkerStats::bytesIn);
        bytes(broker, "out", WorkerStats::bytesOut);
        FunctionCounter.builder("hawser.sessions.started", broker, b -> b.sessions().startedCount())
            .description("Sessions that got a worker").register(registry);
        for (Carrier carrier : Carrier.values()) {
            for (SessionState state : SessionState.values()) {
                Gauge.builder("hawser.sessions", broker, b -> count(b, carrier, state)).description("Sessions")
                    .tag("carrier", carrier.label()).tag("state", state.name().toLowerCase(Locale.ROOT))
                    .register(registry);
            }
        }
        for (RegionView.State state : RegionView.State.values()) {
            Gauge.builder("hawser.regions", broker, b -> b.regions().list().stream()
                .filter(r -> r.state() == state).count()).description("Regions of shared memory")
                .tag("state", state.name().toLowerCase(Locale.ROOT)).register(registry);
        }
        workers(broker, "ready", PoolState::ready);
        workers(broker, "starting", PoolState::starting);
        workers(broker, "assigned", PoolState::assigned);
        memory(broker, "total", b -> b.pool().devices().stream().mapToLong(Device::totalBytes).sum());
        memory(broker, "used", b -> b.sessions().totals().deviceBytes());
        memory(broker, "reserved", b -> b.sessions().list().stream().mapToLong(s -> s.memoryBytes()).sum());
    }

    /** The registry behind {@code /q/metrics}. Micrometer's own gauges cannot disappear with their GPU or vGPU. */
    @SuppressWarnings("deprecation") // of Prometheus's simple client
    private static CollectorRegistry prometheus(MeterRegistry registry) {
        return switch (registry) {
            case PrometheusMeterRegistry found -> found.getPrometheusRegistry();
            case CompositeMeterRegistry several -> several.getRegistries().stream()
                .filter(PrometheusMeterRegistry.class::isInstance).findFirst().map(BrokerMetrics::prometheus)
                .orElseThrow(() -> new IllegalStateException("a Prometheus registry is needed"));
            default -> throw new IllegalStateException("a Prometheus registry is needed: " + registry);
        };
    }

    private static double count(Broker broker, Carrier carrier, SessionState state) {
        return broker.sessions().list().stream()
            .filter(s -> s.state() == state && s.guest().carrier() == carrier).count();
    }

    private void total(Broker broker, String name, String description, ToLongFunction<WorkerStats> value) {
        FunctionCounter.builder(name, broker, b -> value.applyAsLong(b.sessions().totals())).description(description)
            .register(registry);
    }

    private void time(Broker broker, String name, String description, ToLongFunction<WorkerStats> ms) {
        FunctionCounter.builder(name, broker, b -> ms.applyAsLong(b.sessions().totals()) / 1000.0)
            .description(description).baseUnit("seconds").register(registry);
    }

    private void bytes(Broker broker, String direction, ToLongFunction<WorkerStats> value) {
        FunctionCounter.builder("hawser.bytes", broker, b -> value.applyAsLong(b.sessions().totals()))
            .description("Bytes of records, seen from the worker").tag("direction", direction).register(registry);
    }

    private void workers(Broker broker, String state, ToLongFunction<PoolState> value) {
        Gauge.builder("hawser.workers", broker, b -> value.applyAsLong(b.pool())).description("Worker processes")
            .tag("state", state).register(registry);
    }

    private void memory(Broker broker, String kind, ToLongFunction<Broker> value) {
        Gauge.builder("hawser.device.memory", broker, value::applyAsLong).description("Device memory")
            .baseUnit("bytes").tag("kind", kind).register(registry);
    }

    @Override
    public void refused(Carrier carrier, Refusal refusal) {
        refused.get(carrier).get(refusal).increment();
    }

    @Override
    public void sessionStarted(Carrier carrier, Duration time) {
        sessionStart.get(carrier).record(time);
    }

    @Override
    public void workerFailed(String reason) {
        workerFailures.increment();
    }

    @Override
    public void sessionOver(SessionView session, String reason, boolean error) {
        vgpuTotals.over(session);
    }

    @Override
    public void workerStarted(Duration time) {
        workerStart.record(time);
    }
}
