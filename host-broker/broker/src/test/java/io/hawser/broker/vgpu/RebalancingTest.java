package io.hawser.broker.vgpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.Origin;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.PeerGpu;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.store.VgpuStore;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class RebalancingTest {
    private static final Duration SILENT = PeerBroker.MAX_SILENCE.plusSeconds(1);

    private final List<VgpuStore.Kept> rows = new ArrayList<>();
    private final List<PeerBroker> brokers = new ArrayList<>();
    private Placement.Policy policy = Placement.Policy.LEAST_LOADED;

    /** Adds a broker with GPUs of 1000 bytes; names of GPUs are the same at all brokers. */
    private void broker(String name, Duration silence, int gpus, int drained) {
        brokers.add(new PeerBroker(name, brokers.size() + 1, name, 1, Instant.EPOCH, silence, 0, "", "", "", "",
            IntStream.range(0, gpus).mapToObj(i -> new PeerGpu("u" + i, "GPU", "", "9.0", 1000, 0, 0, false,
                i < drained)).toList()));
    }

    private void vgpu(String name, String broker, int gpu, long memoryBytes, int share, boolean inUse)
        throws VgpuException {
        vgpu(new VgpuDraft(null, null, memoryBytes, share, null, "any", null, null).create(name, Origin.REST,
            Vgpu.now()), broker, gpu, inUse);
    }

    private void vgpu(Vgpu vgpu, String broker, int gpu, boolean inUse) {
        rows.add(new VgpuStore.Kept(vgpu, List.of("u" + gpu), broker, inUse));
    }

    private Rebalancing plan() {
        return new Rebalancing(new Placement(policy, 1), rows, brokers);
    }

    private List<String> steps() {
        Rebalancing plan = plan();
        List<String> steps = new ArrayList<>();
        for (Optional<Rebalancing.Step> step = plan.next(); step.isPresent(); step = plan.next()) {
            Rebalancing.Step its = step.get();
            steps.add(its.vgpu() + " " + its.from().broker() + ":" + its.from().gpu() + " " + its.to().broker() + ":"
                + its.to().gpu());
        }
        return steps;
    }

    @Test
    void shouldMoveWhatCostsLeastFromTheWorstGpu() throws Exception {
        broker("left", Duration.ZERO, 1, 0);
        broker("right", Duration.ZERO, 1, 0);
        vgpu("used", "left", 0, 1, 50, true);
        vgpu("large", "left", 0, 300, 50, false);
        vgpu("small", "left", 0, 200, 50, false);
        vgpu("there", "right", 0, 1, 50, false);
        assertEquals(List.of("small left:u0 right:u0"), steps());
    }

    @Test
    void shouldCountEachStepAndUndoWhatHasNotHappened() throws Exception {
        broker("left", Duration.ZERO, 1, 0);
        broker("right", Duration.ZERO, 1, 0);
        for (String name : List.of("a", "b", "c", "d")) {
            vgpu(name, "left", 0, 100, 50, false);
        }
        assertEquals(List.of("a left:u0 right:u0", "b left:u0 right:u0"), steps());
        Rebalancing plan = plan();
        assertEquals("a", plan.next().orElseThrow().vgpu());
        plan.undo();
        assertEquals("b", plan.next().orElseThrow().vgpu());
        assertEquals("c", plan.next().orElseThrow().vgpu());
        assertEquals(Optional.empty(), plan.next(), "a stays, so all is even");
    }

    @Test
    void shouldPackAndSpread() throws Exception {
        broker("left", Duration.ZERO, 3, 0);
        vgpu("a", "left", 0, 300, 90, false);
        vgpu("b", "left", 1, 500, 10, false);
        vgpu("c", "left", 2, 600, 10, false);
        policy = Placement.Policy.PACKED;
        assertEquals(List.of("a left:u0 left:u2"), steps());
        rows.clear();
        vgpu("a", "left", 0, 1, 90, false);
        vgpu("b", "left", 0, 2, 1, false);
        vgpu("c", "left", 0, 3, 1, false);
        policy = Placement.Policy.SPREAD;
        assertEquals(List.of("a left:u0 left:u1", "b left:u0 left:u2"), steps());
    }

    @Test
    void shouldEmptyDrainedGpusAndLeaveSilentBrokers() throws Exception {
        broker("left", Duration.ZERO, 2, 1);
        broker("silent", SILENT, 1, 0);
        vgpu("a", "left", 0, 100, 10, true);
        vgpu("b", "left", 1, 100, 10, true);
        vgpu("c", "silent", 0, 100, 10, true);
        vgpu("d", "silent", 0, 100, 10, true);
        assertEquals(List.of("a left:u0 left:u1"), steps());
    }

    @Test
    void shouldLeaveWhatCannotMove() throws Exception {
        broker("left", Duration.ZERO, 1, 0);
        broker("right", Duration.ZERO, 1, 0);
        vgpu(new VgpuDraft(null, null, 1L, 10, null, "0", null, null).create("named", Origin.REST, Vgpu.now()), "left",
            0, false);
        vgpu(new VgpuDraft(null, null, 1L, 10, null, "any", null, null).create("settings", Origin.SETTINGS,
            Vgpu.now()), "left", 0, false);
        vgpu(new VgpuDraft(null, null, 1L, 10, null, "any", null, null, null, true).create("swaps", Origin.REST,
            Vgpu.now()), "left", 0, false);
        vgpu("large", "left", 0, 900, 10, false);
        assertEquals(List.of("large left:u0 right:u0"), steps());
        vgpu("there", "right", 0, 200, 10, false);
        assertEquals(List.of(), steps());
    }

    @ParameterizedTest
    @EnumSource(Placement.Policy.class)
    void shouldImproveWithEachStepAndReserveNothingTwice(Placement.Policy one) throws Exception {
        policy = one;
        for (int seed = 0; seed < 200; seed++) {
            Random random = new Random(seed);
            brokers.clear();
            rows.clear();
            for (int i = 0; i < 1 + random.nextInt(4); i++) {
                broker("b" + i, Duration.ZERO, 1 + random.nextInt(3), 0);
            }
            fill(random);
            Map<String, VgpuStore.Kept> now = new HashMap<>();
            rows.forEach(row -> now.put(row.vgpu().name(), row));
            Set<String> moved = new HashSet<>();
            Rebalancing plan = plan();
            for (Optional<Rebalancing.Step> next = plan.next(); next.isPresent(); next = plan.next()) {
                Rebalancing.Step step = next.get();
                assertTrue(moved.add(step.vgpu()), "each moves once");
                assertNotEquals(step.from(), step.to());
                VgpuStore.Kept row = now.remove(step.vgpu());
                assertEquals(new Rebalancing.Spot(row.broker(), row.placed().getFirst()), step.from());
                assertTrue(rank(now, step.to()) < rank(now, step.from()), () -> policy + " " + step);
                now.put(step.vgpu(), new VgpuStore.Kept(row.vgpu(), List.of(step.to().gpu()), step.to().broker(),
                    row.inUse()));
                assertTrue(load(now, step.to()).reservedBytes() <= 1000, step::toString);
            }
            List<VgpuStore.Kept> done = List.copyOf(now.values());
            boolean isPossible = done.stream().anyMatch(row -> !moved.contains(row.vgpu().name()) && isBetter(now,
                row));
            assertFalse(isPossible, "a move would be an improvement: seed=" + seed);
        }
    }

    private void fill(Random random) throws VgpuException {
        for (int i = 0; i < random.nextInt(20); i++) {
            PeerBroker broker = brokers.get(random.nextInt(brokers.size()));
            int gpu = random.nextInt(broker.gpus().size());
            long memoryBytes = random.nextInt(300);
            Map<String, VgpuStore.Kept> now = new HashMap<>();
            rows.forEach(row -> now.put(row.vgpu().name(), row));
            if (load(now, new Rebalancing.Spot(broker.name(), "u" + gpu)).reservedBytes() + memoryBytes <= 1000) {
                vgpu("v" + i, broker.name(), gpu, memoryBytes, 1 + random.nextInt(100), random.nextBoolean());
            }
        }
    }

    private GpuLoad load(Map<String, VgpuStore.Kept> now, Rebalancing.Spot spot) {
        PoolTable table = new PoolTable();
        now.values().forEach(table::put);
        return brokers.stream().filter(broker -> broker.name().equals(spot.broker())).flatMap(broker -> table.loads(
            broker).stream()).filter(load -> load.device().uuid().equals(spot.gpu())).findFirst().orElseThrow();
    }

    private long rank(Map<String, VgpuStore.Kept> now, Rebalancing.Spot spot) {
        GpuLoad load = load(now, spot);
        return switch (policy) {
            case LEAST_LOADED -> load.shares();
            case SPREAD -> load.vgpus();
            case PACKED -> -load.reservedBytes();
        };
    }

    private boolean isBetter(Map<String, VgpuStore.Kept> now, VgpuStore.Kept row) {
        Map<String, VgpuStore.Kept> others = new HashMap<>(now);
        others.remove(row.vgpu().name());
        Rebalancing.Spot from = new Rebalancing.Spot(row.broker(), row.placed().getFirst());
        return brokers.stream().flatMap(broker -> broker.gpus().stream().map(gpu -> new Rebalancing.Spot(broker.name(),
            gpu.uuid()))).anyMatch(to -> !to.equals(from) && rank(others, to) < rank(others, from)
                && row.vgpu().memoryBytes() + load(others, to).reservedBytes() <= 1000);
    }
}
