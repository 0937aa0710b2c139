package io.hawser.broker.vgpu;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.broker.model.Origin;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.PeerGpu;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.store.VgpuStore;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** The kept sums against sums of all rows. */
class PoolTableTest {
    private static final int BROKERS = 4;
    private static final int NAMES = 40;
    private static final int OPERATIONS = 20_000;

    private final Random random = new Random(1);
    private final PoolTable table = new PoolTable();
    private final Map<String, VgpuStore.Kept> rows = new TreeMap<>();
    private final List<PeerBroker> brokers = new ArrayList<>();

    private static PeerBroker broker(int number, List<PeerGpu> gpus) {
        return new PeerBroker("id" + number, number, "b" + number, 1, Instant.EPOCH, Duration.ZERO, 0, "", "", "", "",
            gpus);
    }

    /** The GPUs of a broker, with what changes from heartbeat to heartbeat. */
    private List<PeerGpu> gpus(int number) {
        List<PeerGpu> gpus = new ArrayList<>();
        for (int i = 0; i < 1 + number % 3; i++) {
            gpus.add(new PeerGpu("gpu-" + number + "-" + i, "GPU", "", "9.0", 1000, random.nextInt(3) * 10L,
                random.nextInt(3), random.nextInt(9) == 0, random.nextInt(9) == 0));
        }
        return gpus;
    }

    private VgpuStore.Kept row(String name) throws VgpuException {
        int number = random.nextInt(BROKERS + 1); // one more than there are: no broker
        List<String> placed = new ArrayList<>();
        if (number < BROKERS) {
            brokers.get(number).gpus().stream().filter(gpu -> random.nextInt(2) == 0)
                .forEach(gpu -> placed.add(gpu.uuid()));
        }
        long memoryBytes = random.nextInt(4) * 10L;
        Vgpu vgpu = new VgpuDraft(null, null, memoryBytes, 1 + random.nextInt(100), random.nextInt(5) == 0 ? "exclusive"
            : "shared", "any", null, null).create(name, Origin.REST, Vgpu.now());
        if (memoryBytes > 0 && random.nextInt(3) == 0) {
            vgpu = new VgpuDraft(null, null, memoryBytes, null, null, "any", null, null, null, true).create(name,
                Origin.REST, Vgpu.now());
        }
        return new VgpuStore.Kept(vgpu, placed, number < BROKERS ? brokers.get(number).id() : PeerBroker.NONE,
            random.nextBoolean());
    }

    /** Sums all rows, as the table did before it kept sums. */
    private List<GpuLoad> recomputed(PeerBroker broker) {
        List<GpuLoad> loads = new ArrayList<>();
        for (PeerGpu gpu : broker.gpus()) {
            LoadSum sum = new LoadSum();
            int contexts = gpu.otherContexts();
            for (VgpuStore.Kept row : rows.values()) {
                if (row.broker().equals(broker.id()) && (row.placed().isEmpty() || row.placed().contains(gpu.uuid()))) {
                    sum.add(row.vgpu());
                    contexts += row.vgpu().reserves() ? 1 : 0;
                }
            }
            loads.add(sum.on(gpu.device(), contexts, gpu.contextBytes(), gpu.failing(), gpu.drained()));
        }
        return loads;
    }

    @Test
    void shouldKeepTheSumsOfAllRows() throws Exception {
        for (int i = 0; i < BROKERS; i++) {
            brokers.add(broker(i, gpus(i)));
        }
        for (int i = 0; i < OPERATIONS; i++) {
            String name = "v" + random.nextInt(NAMES);
            switch (random.nextInt(8)) {
                case 0 -> {
                    int number = random.nextInt(BROKERS);
                    brokers.set(number, broker(number, gpus(number)));
                }
                case 1, 2 -> {
                    rows.remove(name);
                    table.remove(name);
                }
                default -> {
                    VgpuStore.Kept row = row(name);
                    rows.put(name, row);
                    table.put(row);
                }
            }
            for (PeerBroker broker : brokers) {
                assertEquals(recomputed(broker), table.loads(broker), "operation " + i);
                assertEquals(rows.values().stream().filter(row -> row.broker().equals(broker.id())).toList(),
                    table.of(broker.id()));
            }
            assertEquals(rows.values().stream().filter(row -> row.broker().isEmpty()).toList(),
                table.of(PeerBroker.NONE));
            assertEquals(List.copyOf(rows.values()), List.copyOf(table.all()));
        }
    }
}
