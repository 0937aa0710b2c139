package io.hawser.broker.vgpu;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.GpuChoice;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.PeerGpu;
import io.hawser.broker.model.Sharing;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.store.VgpuStore;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The rules by which a broker places the vGPUs of its pool, and takes those of silent brokers (pool.md). The rules read
 * no clock and no database, so the simulator runs them too. Any thread.
 *
 * @param placement the rules for one GPU.
 * @param table the pool's vGPUs.
 * @param me id of the broker that places.
 * @param brokers all brokers of the pool, by number.
 */
public record PoolPlacement(Placement placement, PoolTable table, String me, Collection<PeerBroker> brokers) {
    /**
     * A vGPU's home.
     *
     * @param broker id of its broker; empty for the only one.
     */
    public record Home(String broker, List<String> gpus) {}

    /**
     * Chooses the home of a vGPU that accepts any GPU.
     *
     * @param mine present reservations on the placing broker's GPUs.
     * @throws VgpuException when a rule forbids every choice; the message names it.
     */
    public Home anywhere(Vgpu vgpu, List<GpuLoad> mine) throws VgpuException {
        Placement.Search search = placement.search(vgpu);
        String owner = me;
        mine.forEach(search::offer);
        for (PeerBroker peer : brokers) {
            if (!peer.id().equals(me) && !peer.isSilent()) {
                for (GpuLoad load : table.loads(peer)) {
                    if (search.offer(load)) {
                        owner = peer.id();
                    }
                }
            }
        }
        return new Home(owner, List.of(search.best().device().uuid()));
    }

    /** The vGPUs that have no broker or a silent one. A broker that is not among the brokers has just come. */
    public Stream<VgpuStore.Kept> abandoned() {
        return Stream.concat(Stream.of(PeerBroker.NONE), brokers.stream().filter(PeerBroker::isSilent)
            .map(PeerBroker::id)).flatMap(id -> table.of(id).stream());
    }

    /** The vGPUs that this broker may give another home: abandoned ones that are not in use. */
    public Candidates takeable() {
        return new Candidates(abandoned().filter(row -> row.broker().isEmpty() || !row.broker().equals(me)
            && !row.inUse() && row.vgpu().origin() != Origin.SETTINGS
            && row.vgpu().gpus().kind() == GpuChoice.Kind.ANY).toList());
    }

    /**
     * The vGPUs to take, one by one. When one has no place, then none with an equal wish has; they would only delay the
     * others. For one thread, and for a time in which no reservation ends.
     */
    public static final class Candidates {
        private final Iterator<VgpuStore.Kept> rows;
        private final Set<Wish> refused = new HashSet<>();

        /** The properties of a vGPU on which its place depends. */
        private record Wish(long memoryBytes, boolean swappable, Sharing mode, GpuChoice gpus) {
            static Wish of(Vgpu vgpu) {
                return new Wish(vgpu.memoryBytes(), vgpu.swappable(), vgpu.mode(), vgpu.gpus());
            }
        }

        private Candidates(List<VgpuStore.Kept> rows) {
            this.rows = rows.iterator();
        }

        /** The next one; empty after the last. */
        public Optional<VgpuStore.Kept> next() {
            while (rows.hasNext()) {
                VgpuStore.Kept row = rows.next();
                if (!refused.contains(Wish.of(row.vgpu()))) {
                    return Optional.of(row);
                }
            }
            return Optional.empty();
        }

        /** Skips the further ones with the wish of this one, which has no place. */
        public void refuse(Vgpu vgpu) {
            refused.add(Wish.of(vgpu));
        }
    }

    /**
     * What a broker publishes of its GPUs, for the placements of the others.
     *
     * @param present its reservations on each GPU.
     * @param views its vGPUs.
     */
    public static List<PeerGpu> published(List<GpuLoad> present, Collection<VgpuView> views) {
        return present.stream().map(load -> {
            Device device = load.device();
            long reserving = views.stream().filter(view -> view.placedGpus().contains(device.uuid())
                && view.vgpu().reserves()).count();
            return new PeerGpu(device.uuid(), device.name(), device.pciBusId(), device.computeCapability(),
                device.totalBytes(), load.contextBytes(), (int) Math.max(0, load.contexts() - reserving),
                load.failing(), load.drained());
        }).toList();
    }
}
