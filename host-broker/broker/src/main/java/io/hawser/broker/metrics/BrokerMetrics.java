package io.hawser.broker.metrics;

import io.hawser.broker.BrokerListener;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.SessionState;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.WorkerStats;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.region.RegionView;
import io.hawser.broker.session.SessionRegistry;
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
import java.util.Locale;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.ToLongFunction;

/**
 * The metrics of {@code /q/metrics}. The names here are Micrometer's; Prometheus shows {@code hawser_calls_total} and
 * so on. Totals include ended sessions, so they never shrink while the broker runs.
 */
@ApplicationScoped
public class BrokerMetrics implements BrokerListener {
    private final MeterRegistry registry;
    private final Map<Carrier, Map<Refusal, Counter>> refused = new EnumMap<>(Carrier.class);
    private final Map<Carrier, Timer> sessionStart = new EnumMap<>(Carrier.class);
    private final Map<MoveOutcome.Result, Counter> moves = new EnumMap<>(MoveOutcome.Result.class);
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
                    Duration.ofMillis(100), Duration.ofMillis(600), Duration.ofSeconds(3))
                .register(registry));
        }
        for (MoveOutcome.Result result : MoveOutcome.Result.values()) {
            moves.put(result, Counter.builder("hawser.moves").description("Requests to move a vGPU to another GPU")
                .tag("result", result.name().toLowerCase(Locale.ROOT)).register(registry));
        }
        workerFailures = Counter.builder("hawser.worker.start.failures")
            .description("Workers that failed before they had a session").register(registry);
        workerStart = Timer.builder("hawser.worker.start").description("Time from a worker's start until it is ready")
            .serviceLevelObjectives(Duration.ofMillis(200), Duration.ofMillis(400), Duration.ofMillis(600),
                Duration.ofSeconds(1), Duration.ofSeconds(3), Duration.ofSeconds(10))
            .register(registry);
    }

    /**
     * Registers the metrics of a broker, once.
     *
     * @param version of the broker.
     * @param ready whether a new guest can expect a session.
     */
    public void watch(Sources sources, String version, BooleanSupplier ready) {
        SessionRegistry sessions = sources.sessions();
        new ResourceCollector(sources, version, ready, vgpuTotals).register(prometheus(registry));
        total(sessions, "hawser.calls", "Records received from guests", WorkerStats::calls);
        total(sessions, "hawser.synchronous.round.trips", "Calls whose caller waited for the reply",
            WorkerStats::roundTrips);
        total(sessions, "hawser.refused.records", "Records that no correct guest library sends",
            WorkerStats::refusedRecords);
        total(sessions, "hawser.kernels", "Kernels launched", WorkerStats::kernels);
        time(sessions, "hawser.gpu.time", "Time in which sessions had kernels on the GPU", WorkerStats::gpuTimeMs);
        time(sessions, "hawser.turn.wait", "Time in which kernels waited for their vGPU's turn", WorkerStats::waitedMs);
        bytes(sessions, "in", WorkerStats::bytesIn);
        bytes(sessions, "out", WorkerStats::bytesOut);
        FunctionCounter.builder("hawser.sessions.started", sessions, SessionRegistry::startedCount)
            .description("Sessions that got a worker").register(registry);
        for (Carrier carrier : Carrier.values()) {
            for (SessionState state : SessionState.values()) {
                Gauge.builder("hawser.sessions", sessions, s -> count(s, carrier, state)).description("Sessions")
                    .tag("carrier", carrier.label()).tag("state", state.name().toLowerCase(Locale.ROOT))
                    .register(registry);
            }
        }
        for (RegionView.State state : RegionView.State.values()) {
            Gauge.builder("hawser.regions", sources.regions(), regions -> regions.list().stream()
                .filter(r -> r.state() == state).count()).description("Regions of shared memory")
                .tag("state", state.name().toLowerCase(Locale.ROOT)).register(registry);
        }
        workers(sources.pools(), "ready", PoolState::ready);
        workers(sources.pools(), "starting", PoolState::starting);
        workers(sources.pools(), "assigned", PoolState::assigned);
        pool(sources.pools(), "size", "Workers that the broker keeps ready", PoolState::size);
        pool(sources.pools(), "grown", "Workers that demand has added to the pools", PoolState::grown);
        pool(sources.pools(), "waiting", "Sessions that wait for a worker", p -> p.waiting().values().stream()
            .mapToInt(Integer::intValue).sum());
        memory("total", sources.pools(), p -> p.state().devices().stream().mapToLong(Device::totalBytes).sum());
        memory("used", sessions, s -> s.totals().deviceBytes());
        memory("reserved", sessions, s -> s.list().stream().mapToLong(SessionView::memoryBytes).sum());
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

    private static double count(SessionRegistry sessions, Carrier carrier, SessionState state) {
        return sessions.list().stream()
            .filter(s -> s.state() == state && s.guest().carrier() == carrier).count();
    }

    private void total(SessionRegistry sessions, String name, String description, ToLongFunction<WorkerStats> value) {
        FunctionCounter.builder(name, sessions, s -> value.applyAsLong(s.totals())).description(description)
            .register(registry);
    }

    private void time(SessionRegistry sessions, String name, String description, ToLongFunction<WorkerStats> ms) {
        FunctionCounter.builder(name, sessions, s -> ms.applyAsLong(s.totals()) / 1000.0)
            .description(description).baseUnit("seconds").register(registry);
    }

    private void bytes(SessionRegistry sessions, String direction, ToLongFunction<WorkerStats> value) {
        FunctionCounter.builder("hawser.bytes", sessions, s -> value.applyAsLong(s.totals()))
            .description("Bytes of records, seen from the worker").tag("direction", direction).register(registry);
    }

    private void workers(WorkerPools pools, String state, ToLongFunction<PoolState> value) {
        Gauge.builder("hawser.workers", pools, p -> value.applyAsLong(p.state())).description("Worker processes")
            .tag("state", state).register(registry);
    }

    private void pool(WorkerPools pools, String name, String description, ToLongFunction<PoolState> value) {
        Gauge.builder("hawser.pool." + name, pools, p -> value.applyAsLong(p.state())).description(description)
            .register(registry);
    }

    private <T> void memory(String kind, T source, ToLongFunction<T> value) {
        Gauge.builder("hawser.device.memory", source, value::applyAsLong).description("Device memory")
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
    public void moveOver(MoveOutcome outcome) {
        moves.get(outcome.result()).increment();
    }

    @Override
    public void workerStarted(Duration time) {
        workerStart.record(time);
    }
}
