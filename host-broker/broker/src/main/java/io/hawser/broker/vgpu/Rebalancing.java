package io.hawser.broker.vgpu;

import io.hawser.broker.model.GpuChoice;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.store.VgpuStore;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Plans moves after which the vGPUs of a broker or a pool are placed as the policy would place them now. It works on a
 * copy of the reservations, so each step counts the earlier ones. Each vGPU moves once at most, and only to a GPU that
 * the first criterion of the policy prefers: equal loads are no reason for a move. For one thread.
 */
public final class Rebalancing {
    /** First the vGPUs whose move costs least. */
    private static final Comparator<VgpuStore.Kept> CHEAPEST_FIRST = Comparator.comparing(VgpuStore.Kept::inUse)
        .thenComparingLong(row -> row.vgpu().memoryBytes()).thenComparing(row -> row.vgpu().name());

    private final Placement placement;
    private final PoolTable table = new PoolTable();
    private final List<PeerBroker> brokers;
    private final Set<String> tried = new HashSet<>();
    private VgpuStore.Kept before; // the vGPU of the last step, before it

    /**
     * A move.
     *
     * @param from its present GPU.
     * @param to its next GPU.
     */
    public record Step(String vgpu, Spot from, Spot to) {}

    /**
     * A GPU.
     *
     * @param broker name; empty when there is no pool.
     * @param gpu UUID.
     */
    public record Spot(String broker, String gpu) {}

    private record Gpu(PeerBroker broker, GpuLoad load) {
        boolean isLeft() {
            return load.failing() || load.drained();
        }

        Spot spot() {
            return new Spot(broker.name(), load.device().uuid());
        }

        boolean is(Gpu other) {
            return broker.id().equals(other.broker.id()) && load.device().uuid().equals(other.load.device().uuid());
        }
    }

    /**
     * Begins a plan.
     *
     * @param placement the rules.
     * @param rows the vGPUs.
     * @param brokers those of the pool. The plan leaves silent ones alone.
     */
    public Rebalancing(Placement placement, Collection<VgpuStore.Kept> rows, Collection<PeerBroker> brokers) {
        this.placement = placement;
        this.brokers = brokers.stream().filter(broker -> !broker.isSilent()).toList();
        rows.forEach(table::put);
    }

    /** Begins a plan for a broker without a pool. Event loop only. */
    public static Rebalancing of(VgpuTable vgpus) {
        List<VgpuView> views = vgpus.list();
        return new Rebalancing(vgpus.placement(), views.stream().map(view -> new VgpuStore.Kept(view.vgpu(),
            view.placedGpus(), PeerBroker.NONE, view.sessions() > 0)).toList(), List.of(new PeerBroker(PeerBroker.NONE,
                1, PeerBroker.NONE, 1, Instant.EPOCH, Duration.ZERO, 0, "", "", "", "", PoolPlacement.published(
                    vgpus.present(), views))));
    }

    /** The next step; empty when no move would be an improvement. The following ones assume that it has been done. */
    public Optional<Step> next() {
        List<Gpu> gpus = brokers.stream().flatMap(broker -> table.loads(broker).stream().map(load -> new Gpu(broker,
            load))).toList();
        Comparator<Gpu> worstFirst = Comparator.comparing(Gpu::isLeft).thenComparing(Gpu::load,
            placement.policy().order()).reversed();
        long bestRank = gpus.stream().filter(gpu -> !gpu.isLeft()).mapToLong(this::rank).min().orElse(Long.MAX_VALUE);
        for (Gpu gpu : gpus.stream().sorted(worstFirst).toList()) {
            for (VgpuStore.Kept row : table.of(gpu.broker.id()).stream().sorted(CHEAPEST_FIRST).toList()) {
                if (row.placed().equals(List.of(gpu.load.device().uuid())) && isMovable(row.vgpu())) {
                    Optional<Step> step = step(row, gpu, gpus, bestRank);
                    if (step.isPresent()) {
                        tried.add(row.vgpu().name());
                        before = row;
                        return step;
                    }
                }
            }
        }
        return Optional.empty();
    }

    /** The last step has not been done; its vGPU stays. */
    public void undo() {
        table.put(before);
    }

    private boolean isMovable(Vgpu vgpu) {
        return vgpu.gpus().kind() == GpuChoice.Kind.ANY && !vgpu.swappable() && !tried.contains(vgpu.name());
    }

    private long rank(Gpu gpu) {
        return placement.policy().rank(gpu.load);
    }

    private Optional<Step> step(VgpuStore.Kept row, Gpu from, List<Gpu> gpus, long bestRank) {
        Vgpu vgpu = row.vgpu();
        table.remove(vgpu.name());
        long rank = from.isLeft() ? Long.MAX_VALUE : placement.policy().rank(table.loads(from.broker).stream()
            .filter(load -> load.device().uuid().equals(from.load.device().uuid())).findFirst().orElseThrow());
        Gpu best = null;
        if (rank > bestRank) {
            Placement.Search search = placement.search(vgpu);
            for (Gpu gpu : gpus) {
                boolean isAllowed = vgpu.origin() != Origin.SETTINGS || gpu.broker.id().equals(from.broker.id());
                if (isAllowed && !gpu.isLeft() && !gpu.is(from) && rank(gpu) < rank && search.offer(gpu.load)) {
                    best = gpu;
                }
            }
        }
        if (best == null) {
            table.put(row);
            return Optional.empty();
        }
        table.put(new VgpuStore.Kept(vgpu, List.of(best.load.device().uuid()), best.broker.id(), row.inUse()));
        return Optional.of(new Step(vgpu.name(), from.spot(), best.spot()));
    }
}
