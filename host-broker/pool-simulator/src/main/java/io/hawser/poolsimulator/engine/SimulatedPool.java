package io.hawser.poolsimulator.engine;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.vgpu.Placement;
import io.hawser.broker.vgpu.PoolPlacement;
import io.hawser.broker.vgpu.PoolTable;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.poolsimulator.load.Arrival;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;

/**
 * A pool under the broker's own placement. Acts come one after the other, as under the pool's lock, so one table of the
 * pool stands for the equal tables of all brokers. Each broker has its own table of its vGPUs. For one thread.
 */
final class SimulatedPool {
    private static final ThreadMXBean THREAD = ManagementFactory.getThreadMXBean();
    private static final int MAX_TAKEN = 64; // as in a broker's transaction
    private static final long MIB = 1 << 20;

    private final Placement placement;
    private final Placing placing;
    private final SplittableRandom random;
    private final List<Node> nodes = new ArrayList<>();
    private final Map<String, Node> byId = new HashMap<>();
    private final PoolTable table = new PoolTable();
    private final Map<String, Arrival> wishes = new HashMap<>(); // by vGPU
    private final Count count;
    private final Tally tally;
    private List<PeerBroker> peers = List.of();
    private int made;

    SimulatedPool(PoolShape shape, Placement placement, Placing placing, Tally tally, SplittableRandom random) {
        this.placement = placement;
        this.placing = placing;
        this.tally = tally;
        this.random = random;
        count = new Count(shape.gpuBytes(), shape.contextBytes());
        for (int i = 1; i <= shape.brokers(); i++) {
            Node node = new Node(i, shape, placement);
            nodes.add(node);
            byId.put(node.id(), node);
            node.devices().forEach(device -> count.addGpu(device.uuid()));
        }
        beat(0);
    }

    /** Heartbeats of all brokers that reach the database, each of which then sees the others'. */
    void beat(long nowMs) {
        nodes.stream().filter(node -> !node.isCut()).forEach(node -> node.beat(nowMs));
        peers = nodes.stream().map(node -> node.peer(nowMs)).toList();
    }

    /**
     * Creates a vGPU at a broker by chance.
     *
     * @return its name; empty when no GPU has a place.
     */
    Optional<String> create(Arrival arrival) {
        String name = "v" + ++made;
        Vgpu vgpu = vgpu(name, arrival);
        Node receiver = anyone();
        try {
            long startNs = System.nanoTime();
            long processorNs = THREAD.getCurrentThreadCpuTime();
            PoolPlacement.Home home = placing.anywhere(rules(receiver), vgpu, receiver.vgpus().present());
            processorNs = THREAD.getCurrentThreadCpuTime() - processorNs;
            tally.placed(System.nanoTime() - startNs, processorNs, wishes.size());
            wishes.put(name, arrival);
            settle(vgpu, home);
            return Optional.of(name);
        } catch (VgpuException e) {
            tally.refused(arrival, e.getMessage());
            return Optional.empty();
        }
    }

    private static Vgpu vgpu(String name, Arrival arrival) {
        try {
            return new VgpuDraft(null, null, arrival.memoryMib() * MIB, arrival.share(), null, "any", null, null)
                .create(name, Origin.REST, Instant.ofEpochMilli(arrival.atMs()));
        } catch (VgpuException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    private Node anyone() {
        Node node;
        do {
            node = nodes.get(random.nextInt(nodes.size()));
        } while (node.isCut());
        return node;
    }

    private PoolPlacement rules(Node node) {
        return new PoolPlacement(placement, table, node.id(), peers);
    }

    /** Writes a vGPU's home. Its guest comes if the broker answers. */
    private void settle(Vgpu vgpu, PoolPlacement.Home home) {
        Node node = byId.get(home.broker());
        VgpuStore.Kept row = new VgpuStore.Kept(vgpu, home.gpus(), home.broker(),
            wishes.get(vgpu.name()).isUsed() && !node.isCut());
        table.put(row);
        if (!node.isCut()) {
            node.apply(row);
        }
        count.place(vgpu.name(), home.gpus().getFirst(), vgpu.memoryBytes());
        tally.homed(vgpu.name(), home);
    }

    /**
     * Deletes a vGPU. A broker that answers deletes its own; another one's only by force, after its silence.
     *
     * @return false when its broker does not answer and is not silent yet: the client tries again.
     */
    boolean delete(String name) {
        VgpuStore.Kept row = table.find(name).orElseThrow();
        Node node = byId.get(row.broker());
        if (node.isCut() && !isSilent(node)) {
            return false;
        }
        table.remove(name);
        wishes.remove(name);
        count.remove(name);
        if (!node.isCut()) {
            node.remove(name);
        }
        return true;
    }

    private boolean isSilent(Node node) {
        return peers.get(nodes.indexOf(node)).isSilent();
    }

    /** Cuts brokers by chance from the database. */
    void cut(double part) {
        List<Node> left = new ArrayList<>(nodes);
        for (int i = (int) Math.round(part * nodes.size()); i > 0; i--) {
            left.remove(random.nextInt(left.size())).cut();
        }
    }

    /** All brokers reach the database again. */
    void restore(long nowMs) {
        nodes.stream().filter(Node::isCut).forEach(node -> tally.dropped(node.restore(table, nowMs)));
        beat(nowMs);
    }

    /** Each broker that answers takes what silent ones have, until no vGPU has a new home. */
    void takeOver(long nowMs) {
        int taken;
        do {
            taken = take(anyone());
            tally.taken(taken, nowMs);
        } while (taken > 0);
    }

    private int take(Node taker) {
        int taken = 0;
        PoolPlacement.Candidates candidates = rules(taker).takeable();
        for (Optional<VgpuStore.Kept> row = candidates.next(); row.isPresent() && taken < MAX_TAKEN; row =
            candidates.next()) {
            Vgpu vgpu = row.get().vgpu();
            try {
                settle(vgpu, placing.anywhere(rules(taker), vgpu, taker.vgpus().present()));
                taken++;
            } catch (VgpuException e) {
                candidates.refuse(vgpu); // stays until there is room
            }
        }
        return taken;
    }

    /** The pool's state at a time. */
    Sample sample(long nowMs, long sizeBytes) {
        Set<String> silent = new HashSet<>();
        peers.stream().filter(PeerBroker::isSilent).forEach(peer -> silent.add(peer.id()));
        long total = 0;
        long free = 0;
        long unusable = 0;
        for (Node node : nodes) {
            for (Device device : silent.contains(node.id()) ? List.<Device>of() : node.devices()) {
                long gpuFree = count.freeBytes(device.uuid());
                total += device.totalBytes();
                free += Math.max(0, gpuFree);
                unusable += gpuFree < sizeBytes ? Math.max(0, gpuFree) : 0;
            }
        }
        int homeless = 0;
        int used = 0;
        for (String id : silent) {
            for (VgpuStore.Kept row : table.of(id)) {
                used += row.inUse() ? 1 : 0;
                homeless += row.inUse() ? 0 : 1;
            }
        }
        return new Sample(nowMs, wishes.size(), homeless, used, total == 0 ? 0 : 1 - (double) free / total,
            free == 0 ? 0 : (double) unusable / free);
    }

    /** Compares the count with the database's rows, and with the own table of each broker that answers. */
    void audit() {
        Map<String, Long> rows = new LinkedHashMap<>();
        nodes.forEach(node -> node.devices().forEach(device -> rows.put(device.uuid(), 0L)));
        table.all().forEach(row -> row.placed().forEach(uuid -> rows.merge(uuid, row.vgpu().memoryBytes(),
            Long::sum)));
        count.compare("the database", rows);
        for (Node node : nodes) {
            if (!node.isCut()) {
                Map<String, Long> own = new LinkedHashMap<>();
                node.devices().forEach(device -> own.put(device.uuid(), 0L));
                for (VgpuView view : node.vgpus().list()) {
                    view.placedGpus().forEach(uuid -> own.merge(uuid, view.vgpu().memoryBytes(), Long::sum));
                }
                count.compare(node.id(), own);
            }
        }
    }

    Count count() {
        return count;
    }
}
