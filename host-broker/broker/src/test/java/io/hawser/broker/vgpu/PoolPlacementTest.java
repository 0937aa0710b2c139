package io.hawser.broker.vgpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.Device;
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
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PoolPlacementTest {
    private static final Placement LEAST = Placement.of("least-loaded", 1);
    private final PoolTable table = new PoolTable();

    private static PeerBroker broker(String id, int number, Duration silence, int gpus) {
        List<PeerGpu> all = IntStream.range(0, gpus).mapToObj(i -> new PeerGpu(id + "-" + i, "GPU", "", "9.0", 1000, 10,
            1, false, false)).toList();
        return new PeerBroker(id, number, id, 1, Instant.EPOCH, silence, 0, "", "", "", "", all);
    }

    private static Vgpu vgpu(String name, long memoryBytes, String gpus, Origin origin) throws VgpuException {
        return new VgpuDraft(null, null, memoryBytes, 10, null, gpus, null, null).create(name, origin, Vgpu.now());
    }

    private void put(Vgpu vgpu, String broker, boolean inUse, String... placed) {
        table.put(new VgpuStore.Kept(vgpu, List.of(placed), broker, inUse));
    }

    private static GpuLoad own(int vgpus, long reservedBytes) {
        return new GpuLoad(new Device("GPU", "me-0", 1000, "", ""), vgpus, 10 * vgpus,
            new Reserved(reservedBytes, 0, 0), 1 + vgpus, 10, "", "", false, false);
    }

    private PoolPlacement of(PeerBroker... brokers) {
        return new PoolPlacement(LEAST, table, "me", List.of(brokers));
    }

    @Test
    void shouldPreferTheFirstOfEqualGpusAndItsOwn() throws Exception {
        PeerBroker other = broker("other", 2, Duration.ZERO, 2);
        PoolPlacement both = of(broker("me", 1, Duration.ZERO, 1), other);
        Vgpu vgpu = vgpu("v", 100, "any", Origin.REST);
        assertEquals(new PoolPlacement.Home("me", List.of("me-0")), both.anywhere(vgpu, List.of(own(0, 0))));
        assertEquals(new PoolPlacement.Home("other", List.of("other-0")), both.anywhere(vgpu, List.of(own(1, 100))));
        put(vgpu, "other", false, "other-0");
        assertEquals(new PoolPlacement.Home("other", List.of("other-1")), both.anywhere(vgpu, List.of(own(1, 100))));
        assertEquals("me", of(other.withSilence(Duration.ofSeconds(16))).anywhere(vgpu, List.of(own(1, 100))).broker(),
            "nothing goes to a silent broker");
    }

    @Test
    void shouldNameFewGpusInARefusal() throws Exception {
        String message = assertThrows(VgpuException.class, () -> of(broker("other", 2, Duration.ZERO, 5000)).anywhere(
            vgpu("v", 981, "any", Origin.REST), List.of(own(0, 0)))).getMessage();
        assertTrue(message.contains("gpu=me-0 wantedBytes=981 freeBytes=980") && message.contains("gpu=other-6 "),
            message);
        assertTrue(message.endsWith("; further GPUs without a place: gpus=4993"), message);
    }

    @Test
    void shouldTakeOnlyWhatNobodyAnswersForAndNobodyUses() throws Exception {
        PeerBroker silent = broker("silent", 3, Duration.ofSeconds(16), 1);
        put(vgpu("mine", 1, "any", Origin.REST), "me", false, "me-0");
        put(vgpu("answers", 1, "any", Origin.REST), "other", false, "other-0");
        put(vgpu("idle", 1, "any", Origin.REST), "silent", false, "silent-0");
        put(vgpu("used", 1, "any", Origin.REST), "silent", true, "silent-0");
        put(vgpu("named", 1, "0", Origin.REST), "silent", false, "silent-0");
        put(vgpu("settings", 1, "any", Origin.SETTINGS), "silent", false, "silent-0");
        put(vgpu("new", 1, "any", Origin.REST), "not known yet", false, "x");
        put(vgpu("homeless", 1, "0", Origin.REST), PeerBroker.NONE, true);
        PoolPlacement rules = of(broker("me", 1, Duration.ZERO, 1), broker("other", 2, Duration.ZERO, 1), silent);
        assertEquals(List.of("homeless", "idle"), names(all(rules.takeable())));
        assertEquals(List.of("homeless", "idle", "named", "settings", "used"), names(rules.abandoned().toList()));
        assertEquals(List.of("homeless"), names(all(new PoolPlacement(LEAST, table, "silent",
            List.of(silent)).takeable())), "a broker never takes its own");
    }

    private static List<String> names(List<VgpuStore.Kept> rows) {
        List<String> names = new ArrayList<>();
        rows.forEach(row -> names.add(row.vgpu().name()));
        return names;
    }

    private static List<VgpuStore.Kept> all(PoolPlacement.Candidates candidates) {
        List<VgpuStore.Kept> all = new ArrayList<>();
        for (Optional<VgpuStore.Kept> row = candidates.next(); row.isPresent(); row = candidates.next()) {
            all.add(row.get());
        }
        return all;
    }

    @Test
    void shouldNotTryAWishThatHasNoPlaceTwice() throws Exception {
        put(vgpu("a", 500, "any", Origin.REST), "silent", false, "silent-0");
        put(vgpu("b", 500, "any", Origin.REST), "silent", false, "silent-0");
        put(vgpu("c", 400, "any", Origin.REST), "silent", false, "silent-0");
        PoolPlacement.Candidates candidates = of(broker("silent", 2, Duration.ofSeconds(16), 1)).takeable();
        assertEquals("a", candidates.next().orElseThrow().vgpu().name());
        candidates.refuse(vgpu("a", 500, "any", Origin.REST));
        assertEquals("c", candidates.next().orElseThrow().vgpu().name());
        assertTrue(candidates.next().isEmpty());
    }
}
