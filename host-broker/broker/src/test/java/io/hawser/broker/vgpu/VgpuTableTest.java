package io.hawser.broker.vgpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.model.WorkerKind;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The table without database, sessions or workers. */
class VgpuTableTest {
    private static final Device FIRST = device("aaaaaaaa-0000-4000-8000-000000000001");
    private static final Device SECOND = device("bbbbbbbb-0000-4000-8000-000000000002");
    private static final List<Device> BOTH = List.of(FIRST, SECOND);

    private final VgpuTable table = new VgpuTable(Placement.of("least-loaded", 1), 1, uuid -> false);

    private static Device device(String uuid) {
        return new Device("GPU", uuid, 1000, "", "");
    }

    private static Vgpu vgpu(String name, long memoryBytes, String gpus) throws VgpuException {
        return new VgpuDraft(null, null, memoryBytes, null, null, gpus, null, null).create(name, Origin.REST,
            Vgpu.now());
    }

    private static VgpuDraft memory(long bytes) {
        return new VgpuDraft(null, null, bytes, null, null, null, null, null);
    }

    private void add(String name, long memoryBytes, String gpus) throws VgpuException {
        table.add(table.plan(vgpu(name, memoryBytes, gpus)));
    }

    private VgpuView find(String name) {
        return table.find(name).orElseThrow();
    }

    private String uuid(String name) {
        return find(name).placedGpus().getFirst();
    }

    @Test
    void shouldWaitForTheGpusAndThenStayWhereItWas() throws VgpuException {
        table.load(vgpu("a", 900, "any"), List.of(SECOND.uuid()));
        table.load(vgpu("b", 900, "any"), List.of());
        assertEquals(VgpuState.WAITING, find("a").state());
        assertNull(table.objection("a", Carrier.TCP), "a guest must wait with its vGPU");
        VgpuException unknown = assertThrows(VgpuException.class, () -> table.plan(vgpu("c", 0, "any")));
        assertEquals(VgpuException.Kind.UNAVAILABLE, unknown.kind());
        VgpuTable.Settled settled = table.settle(BOTH);
        assertEquals(Map.of("b", List.of(FIRST.uuid())), settled.moved(), "the table must report the new placement");
        assertEquals(SECOND.uuid(), uuid("a"), "the vGPU must return to its GPU");
        assertEquals(Set.of(whole(FIRST), whole(SECOND)), table.kinds());
    }

    private static WorkerKind whole(Device gpu) {
        return new WorkerKind(List.of(gpu.uuid()), WorkerKind.WHOLE);
    }

    private void addShares(String mode, String gpu, int... shares) throws VgpuException {
        for (int share : shares) {
            String name = "v" + table.list().size();
            table.add(table.plan(new VgpuDraft(null, null, 0L, share, mode, gpu, null, null).create(name, Origin.REST,
                Vgpu.now())));
        }
    }

    @Test
    void shouldKeepWorkersForThePercentagesThatMostVgpusHaveUnderMps() throws VgpuException {
        table.shareByPercentage();
        table.settle(BOTH);
        addShares("shared", "0", 10, 20, 30, 40, 50, 20, 50, 50);
        addShares("exclusive", "1", 10);
        assertEquals(Set.of(new WorkerKind(List.of(FIRST.uuid()), 50), new WorkerKind(List.of(FIRST.uuid()), 20),
            new WorkerKind(List.of(FIRST.uuid()), 10), new WorkerKind(List.of(FIRST.uuid()), 30), whole(SECOND)),
            table.kinds(), "the two most common, then the oldest; the whole GPU for an exclusive vGPU");
        assertEquals(40, table.percentage("v3"), "a rare percentage must get its workers on demand");
        assertEquals(4, table.gpus().getFirst().contexts(), "ready workers must count as contexts");
    }

    @Test
    void shouldKnowNoPercentagesWithoutMps() throws VgpuException {
        table.settle(BOTH);
        addShares("shared", "0", 10, 20, 30);
        assertEquals(Set.of(whole(FIRST)), table.kinds());
        assertEquals(WorkerKind.WHOLE, table.percentage("v0"));
    }

    @Test
    void shouldKeepWorkersInANetworkOfItsOwnForEachVgpuThatCommunicates() throws VgpuException {
        table.settle(BOTH);
        for (String name : List.of("a", "b")) {
            table.add(table.plan(new VgpuDraft(null, null, null, null, null, "0", null, null, "host", null).create(name,
                Origin.REST, Vgpu.now())));
        }
        add("alone", 0, "0");
        List<String> gpu = List.of(FIRST.uuid());
        assertEquals(Set.of(new WorkerKind(gpu, WorkerKind.WHOLE, "a"), new WorkerKind(gpu, WorkerKind.WHOLE, "b"),
            whole(FIRST)), table.kinds());
        assertEquals("a", table.network("a"));
        assertEquals("", table.network("alone"));
        assertEquals("", table.network("none"));
    }

    @Test
    void shouldMoveAnyAndKeepAListWhenAGpuIsGone() throws VgpuException {
        table.settle(BOTH);
        add("any", 400, "any");
        add("fixed", 300, "1");
        table.settle(List.of(SECOND, FIRST));
        assertEquals(SECOND.uuid(), uuid("fixed"), "the vGPU must keep its GPU when the GPUs' numbers change");
        table.settle(BOTH);
        VgpuTable.Settled gone = table.settle(List.of(SECOND));
        assertEquals(Map.of("any", List.of(SECOND.uuid())), gone.moved());
        assertEquals(Set.of("any"), gone.lost(), "the sessions of the moved vGPU must end");
        VgpuTable.Settled other = table.settle(List.of(FIRST));
        assertEquals(Set.of("any", "fixed"), other.lost());
        assertEquals(VgpuState.UNPLACED, find("fixed").state());
        assertEquals(List.of(), find("fixed").placedGpus());
        assertTrue(table.objection("fixed", Carrier.TCP).contains("must be there: vgpu=fixed gpu=" + SECOND.uuid()));
        assertEquals(Amount.NONE, table.amount("fixed", SECOND));
        table.settle(BOTH);
        assertEquals(SECOND.uuid(), uuid("fixed"), "the vGPU must return to its GPU");
        assertEquals(FIRST.uuid(), uuid("any"), "the moved vGPU must stay");
    }

    @Test
    void shouldHaveNothingToGiveWhenAllGpusAreLost() throws VgpuException {
        table.settle(BOTH);
        add("any", 400, "any");
        add("all", 0, "all");
        assertEquals(Set.of("any", "all"), table.settle(List.of()).lost());
        assertTrue(table.objection("any", Carrier.TCP).contains("the broker has no GPU"));
        VgpuException none = assertThrows(VgpuException.class, () -> table.plan(vgpu("b", 0, "all")));
        assertEquals(VgpuException.Kind.CONFLICT, none.kind(), "a broker without GPUs must report a conflict");
        table.settle(BOTH);
        assertEquals(VgpuState.READY, find("any").state());
        assertEquals(List.of(FIRST.uuid(), SECOND.uuid()), find("all").placedGpus());
    }

    @Test
    void shouldPlaceTheUnplacedWhenThereIsRoom() throws VgpuException {
        table.load(vgpu("a", 900, "any"), List.of());
        table.load(vgpu("b", 900, "any"), List.of());
        table.settle(List.of(FIRST));
        assertEquals(VgpuState.READY, find("a").state());
        assertEquals(VgpuState.UNPLACED, find("b").state());
        assertTrue(find("b").problem().contains("freeBytes=100"), find("b").problem());
        assertEquals(Map.of("b", List.of(FIRST.uuid())), table.remove("a").moved());
        assertEquals("", find("b").problem());
    }

    @Test
    void shouldFollowAllGpus() throws VgpuException {
        table.settle(BOTH);
        add("all", 10, "all");
        table.enter("all");
        assertEquals(Set.of("all"), table.settle(List.of(FIRST)).lost());
        assertEquals(List.of(FIRST.uuid()), find("all").placedGpus());
        table.settle(BOTH);
        assertEquals(List.of(FIRST.uuid()), find("all").placedGpus(), "a vGPU with sessions must not move");
        table.leave("all");
        table.settle(BOTH);
        assertEquals(List.of(FIRST.uuid(), SECOND.uuid()), find("all").placedGpus());
    }

    @Test
    void shouldRefuseAQuotaBelowWhatIsUsed() throws VgpuException {
        table.settle(BOTH);
        add("a", 500, "all");
        Vgpu before = find("a").vgpu();
        Vgpu less = memory(399).change(before, Vgpu.now());
        VgpuException refused = assertThrows(VgpuException.class, () -> table.planChange("a", less,
            uuid -> uuid.equals(SECOND.uuid()) ? 400 : 10));
        assertTrue(refused.getMessage().contains("memoryBytes=399 gpu=" + SECOND.uuid() + " usedBytes=400"),
            refused.getMessage());
        Vgpu enough = memory(400).change(before, Vgpu.now());
        table.change(table.planChange("a", enough, uuid -> 400));
        assertEquals(new Amount(400, 400), table.amount("a", SECOND));
        Vgpu none = memory(0).change(before, Vgpu.now());
        table.change(table.planChange("a", none, uuid -> 400));
        assertEquals(new Amount(1000, 1000), table.amount("a", SECOND));
        add("b", 300, "1");
        assertEquals(new Amount(1000, 700), table.amount("a", SECOND), "best effort must get the unreserved memory");
    }

    @Test
    void shouldMoveOnlyWithoutSessions() throws VgpuException {
        table.settle(BOTH);
        add("a", 500, "0");
        add("b", 500, "0");
        table.enter("a");
        Vgpu more = memory(501).change(find("a").vgpu(), Vgpu.now());
        assertThrows(VgpuException.class, () -> table.planChange("a", more, uuid -> 0));
        Vgpu other = new VgpuDraft(null, null, null, null, null, "1", null, null).change(find("a").vgpu(), Vgpu.now());
        assertTrue(assertThrows(VgpuException.class, () -> table.planChange("a", other, uuid -> 0)).getMessage()
            .contains("vgpu=a sessions=1"));
        table.leave("a");
        VgpuTable.Planned planned = table.planChange("a", other, uuid -> 0);
        assertTrue(table.objection("a", Carrier.TCP).contains("is being moved"),
            "no session may start during the move");
        CompletableFuture<Void> guest = table.whenMoved("a");
        assertFalse(guest.isDone());
        table.change(planned);
        assertTrue(guest.isDone());
        assertEquals(SECOND.uuid(), uuid("a"));
        assertNull(table.objection("a", Carrier.TCP));
    }

    @Test
    void shouldLetNobodyIntoWhatIsBeingDeleted() throws VgpuException {
        table.settle(BOTH);
        add("a", 0, "any");
        table.close("a");
        assertTrue(table.whenMoved("a").isDone(), "nobody waits for what does not come back");
        assertNotNull(table.objection("a", Carrier.SHM));
        assertTrue(!table.has("a"), "a closed vGPU must take no region");
        assertThrows(VgpuException.class, () -> table.close("a"), "a second close must fail");
        table.open("a");
        assertNull(table.objection("a", Carrier.SHM));
    }

    @Test
    void shouldCountContextsWhereTheyCost() throws VgpuException {
        table.settle(List.of(FIRST));
        table.setContextBytes(FIRST.uuid(), 100);
        add("a", 500, "any"); // plus contexts of a spare worker and a first session
        assertEquals(700, table.gpus().getFirst().committedBytes());
        for (int i = 0; i < 4; i++) {
            assertNull(table.objection("a", Carrier.TCP), "session " + i);
            table.enter("a");
        }
        assertTrue(table.objection("a", Carrier.TCP).contains("no room for one more context"),
            "the contexts fill the GPU");
        VgpuException full = assertThrows(VgpuException.class, () -> table.plan(vgpu("b", 1, "any")));
        assertTrue(full.getMessage().contains("contexts=5 contextBytes=100"), full.getMessage());
    }

    @Test
    void shouldTellTheRoomForContextsBesideAllReservations() throws VgpuException {
        table.settle(BOTH);
        assertEquals(Integer.MAX_VALUE, table.contextRoom(List.of()), "an unknown context takes no memory");
        table.setContextBytes(FIRST.uuid(), 100);
        add("a", 500, "0"); // plus contexts of a spare worker and a first session
        assertEquals(3, table.contextRoom(List.of(FIRST.uuid())));
        assertEquals(3, table.contextRoom(List.of()), "the fullest GPU must decide");
        assertEquals(Integer.MAX_VALUE, table.contextRoom(List.of(SECOND.uuid())));
        add("b", 200, "0");
        assertEquals(0, table.contextRoom(List.of(FIRST.uuid())));
    }

    private static VgpuDraft swappable(Long bytes, Boolean swappable) {
        return new VgpuDraft(null, null, bytes, null, null, null, null, null, null, swappable);
    }

    private static void addSwappable(VgpuTable to, String name, long bytes) throws VgpuException {
        to.add(to.plan(swappable(bytes, true).create(name, Origin.REST, Vgpu.now())));
    }

    @Test
    void shouldGiveBestEffortTheMemoryBesideTheLargestSwappableVgpu() throws VgpuException {
        VgpuTable half = new VgpuTable(Placement.of("least-loaded", 1.5), 1, uuid -> false);
        for (VgpuTable each : List.of(table, half)) {
            each.settle(List.of(FIRST));
            each.add(each.plan(vgpu("fixed", 100, "any")));
            each.add(each.plan(vgpu("free", 0, "any")));
            addSwappable(each, "small", 300);
            addSwappable(each, "large", 500);
        }
        assertEquals(new Amount(1000, 400), half.amount("free", FIRST));
        assertEquals(new Amount(1000, 100), table.amount("free", FIRST), "nothing may swap without overcommit");
        assertEquals(new Amount(500, 500), half.amount("large", FIRST));
        addSwappable(half, "more", 600);
        assertEquals(new Amount(1000, 300), half.amount("free", FIRST));
        assertEquals(new Reserved(100, 1400, 600), half.gpus().getFirst().reserved());
        VgpuException full = assertThrows(VgpuException.class, () -> addSwappable(half, "last", 1));
        assertTrue(full.getMessage().contains("freeBytes=0 totalBytes=1000 reservedBytes=1500 swappableBytes=1400"),
            full.getMessage());
    }

    @Test
    void shouldChangeWhetherAVgpuIsSwappableOnlyWithoutSessionsAndIfItFits() throws VgpuException {
        VgpuTable half = new VgpuTable(Placement.of("least-loaded", 1.5), 1, uuid -> false);
        half.settle(List.of(FIRST));
        addSwappable(half, "a", 600);
        addSwappable(half, "b", 600);
        Vgpu before = half.find("a").orElseThrow().vgpu();
        Vgpu fixed = swappable(null, false).change(before, Vgpu.now());
        half.enter("a");
        VgpuException used = assertThrows(VgpuException.class, () -> half.planChange("a", fixed, uuid -> 0));
        assertTrue(used.getMessage().contains("whether it is swappable, and then its memory: vgpu=a sessions=1"),
            used.getMessage());
        Vgpu small = swappable(500L, true).change(before, Vgpu.now());
        assertThrows(VgpuException.class, () -> half.planChange("a", small, uuid -> 0), "what is out needs its room");
        half.leave("a");
        assertEquals(500, half.planChange("a", small, uuid -> 0).vgpu().memoryBytes());
        VgpuException full = assertThrows(VgpuException.class, () -> half.planChange("a", fixed, uuid -> 0));
        assertTrue(full.getMessage().contains("wantedBytes=600 freeBytes=400"), full.getMessage());
        Vgpu less = swappable(400L, false).change(before, Vgpu.now());
        half.change(half.planChange("a", less, uuid -> 0));
        assertEquals(new Reserved(400, 600, 600), half.gpus().getFirst().reserved());
        assertEquals(List.of(FIRST.uuid()), half.find("a").orElseThrow().placedGpus());
    }
}
