package io.hawser.broker.vgpu;

import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.PeerGpu;
import io.hawser.broker.store.VgpuStore;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * The vGPUs of all brokers of a pool, as the database has them. Each placement reads the sums of all GPUs, and an act
 * changes those of one or two brokers, so the table keeps the sums by broker. Thread-safe.
 */
public final class PoolTable {
    private final ConcurrentNavigableMap<String, VgpuStore.Kept> rows = new ConcurrentSkipListMap<>();
    private final Map<String, Its> byBroker = new HashMap<>(); // under the monitor

    /** The vGPUs of one broker, by name, and their sums. */
    private static final class Its {
        private final SortedMap<String, VgpuStore.Kept> rows = new TreeMap<>();
        private List<PeerGpu> gpus; // the GPUs of the sums; null without sums
        private List<GpuLoad> loads;
    }

    /** A vGPU by its name. */
    public Optional<VgpuStore.Kept> find(String name) {
        return Optional.ofNullable(rows.get(name));
    }

    /** All vGPUs, by name. */
    public Collection<VgpuStore.Kept> all() {
        return Collections.unmodifiableCollection(rows.values());
    }

    /**
     * The vGPUs of one broker, by name.
     *
     * @param broker its id; {@link PeerBroker#NONE} for the vGPUs without a broker.
     */
    public synchronized List<VgpuStore.Kept> of(String broker) {
        Its its = byBroker.get(broker);
        return its == null ? List.of() : List.copyOf(its.rows.values());
    }

    /** Adds or replaces a vGPU. */
    public synchronized void put(VgpuStore.Kept row) {
        String name = row.vgpu().name();
        VgpuStore.Kept before = rows.put(name, row);
        if (before != null && !before.broker().equals(row.broker())) {
            drop(before);
        }
        Its its = byBroker.computeIfAbsent(row.broker(), id -> new Its());
        its.rows.put(name, row);
        its.gpus = null;
    }

    /** Removes a vGPU. */
    public synchronized void remove(String name) {
        VgpuStore.Kept before = rows.remove(name);
        if (before != null) {
            drop(before);
        }
    }

    private void drop(VgpuStore.Kept row) {
        Its its = byBroker.get(row.broker());
        its.rows.remove(row.vgpu().name());
        its.gpus = null;
        if (its.rows.isEmpty()) {
            byBroker.remove(row.broker()); // the broker may be gone for good
        }
    }

    /** The reservations on another broker's GPUs, in its order. */
    public synchronized List<GpuLoad> loads(PeerBroker broker) {
        Its its = byBroker.get(broker.id());
        if (its == null) {
            return sums(broker.gpus(), List.of());
        }
        if (its.gpus == null || !its.gpus.equals(broker.gpus())) {
            its.loads = sums(broker.gpus(), its.rows.values());
        }
        its.gpus = broker.gpus(); // equal lists of the next calls are then mostly the same list
        return its.loads;
    }

    private static List<GpuLoad> sums(List<PeerGpu> gpus, Collection<VgpuStore.Kept> its) {
        Map<String, LoadSum> sums = new HashMap<>();
        gpus.forEach(gpu -> sums.put(gpu.uuid(), new LoadSum()));
        for (VgpuStore.Kept row : its) {
            // A vGPU without a GPU may get any of its broker's at any moment.
            for (String uuid : row.placed().isEmpty() ? sums.keySet() : row.placed()) {
                LoadSum sum = sums.get(uuid);
                if (sum != null) {
                    sum.add(row.vgpu());
                }
            }
        }
        List<GpuLoad> loads = new ArrayList<>(gpus.size());
        for (PeerGpu gpu : gpus) {
            LoadSum sum = sums.get(gpu.uuid());
            loads.add(sum.on(gpu.device(), gpu.otherContexts() + sum.reserving(), gpu.contextBytes(), gpu.failing(),
                gpu.drained()));
        }
        return List.copyOf(loads);
    }
}
