package io.hawser.broker.vgpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.Amount;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Places of vGPUs that move between two GPUs of 1000 bytes. */
class MovePlacesTest {
    private static final Device FIRST = new Device("GPU", "aaaaaaaa-0000-4000-8000-000000000001", 1000, "", "");
    private static final Device SECOND = new Device("GPU", "bbbbbbbb-0000-4000-8000-000000000002", 1000, "", "");
    private static final List<Device> BOTH = List.of(FIRST, SECOND);

    private final VgpuTable table = new VgpuTable(Placement.of("least-loaded", 1), 1, uuid -> false);
    private final MovePlaces places = new MovePlaces(table);

    @BeforeEach
    void settle() {
        table.settle(BOTH);
    }

    private void add(String name, long memoryBytes, String gpus, Origin origin, boolean swappable)
        throws VgpuException {
        table.add(table.plan(new VgpuDraft(null, null, memoryBytes, null, null, gpus, null, null, null, swappable)
            .create(name, origin, Vgpu.now())));
    }

    private void add(String name, long memoryBytes, String gpus) throws VgpuException {
        add(name, memoryBytes, gpus, Origin.REST, false);
    }

    private long reserved(Device gpu) {
        return table.gpus().get(BOTH.indexOf(gpu)).reservedBytes();
    }

    private void assertRefused(String reason, String name, Device to) {
        VgpuException refused = assertThrows(VgpuException.class, () -> places.begin(name, to.uuid()));
        assertTrue(refused.getMessage().contains(reason), refused.getMessage());
    }

    @Test
    void shouldCountAMovingVgpuOnBothGpusUntilTheEnd() throws VgpuException {
        add("a", 600, "0");
        MovePlaces.Plan plan = places.begin("a", SECOND.uuid());
        assertEquals(600, reserved(FIRST));
        assertEquals(600, reserved(SECOND));
        assertEquals(Amount.quota(600, 1000), table.amount("a", SECOND), "the target may allocate before the end");
        assertEquals("the vGPU is being moved: vgpu=a", table.objection("a", Carrier.TCP));
        assertRefused("the vGPU is being moved: vgpu=a", "a", SECOND);
        assertThrows(VgpuException.class, () -> table.close("a"), "a moving vGPU cannot be deleted");
        assertThrows(VgpuException.class, () -> table.planChange("a", plan.before(), uuid -> 0));
        places.requireValid(plan);
        places.commit(plan);
        assertEquals(0, reserved(FIRST));
        assertEquals(600, reserved(SECOND));
        assertEquals(List.of(SECOND.uuid()), table.home("a"));
        assertEquals(SECOND.uuid(), table.find("a").orElseThrow().vgpu().gpus().toString());
        assertNull(table.objection("a", Carrier.TCP));
        places.cancel(plan); // an old plan changes nothing
        assertEquals(600, reserved(SECOND));
    }

    @Test
    void shouldCountTwiceWhileItsSessionsGetOtherWorkersOnItsGpu() throws VgpuException {
        add("a", 400, "0");
        assertRefused("gpu=same gives its sessions other workers there", "a", FIRST);
        MovePlaces.Plan plan = places.begin("a", MovePlaces.SAME);
        assertEquals(List.of(FIRST.uuid()), plan.gpus());
        assertEquals(800, reserved(FIRST));
        places.requireValid(plan);
        places.commit(plan);
        assertEquals(400, reserved(FIRST));
        assertEquals("0", table.find("a").orElseThrow().vgpu().gpus().toString());
        add("b", 300, "0");
        assertTrue(assertThrows(VgpuException.class, () -> places.begin("a", MovePlaces.SAME)).getMessage()
            .contains("the GPU's memory is all reserved"));
        add("fixed", 100, "1", Origin.SETTINGS, false);
        places.cancel(places.begin("fixed", MovePlaces.SAME)); // its place does not change
    }

    @Test
    void shouldReleaseTheOtherGpuWhenTheVgpuStays() throws VgpuException {
        add("a", 600, "any");
        places.cancel(places.begin("a", SECOND.uuid()));
        assertEquals(600, reserved(FIRST));
        assertEquals(0, reserved(SECOND));
        assertNull(table.objection("a", Carrier.TCP));
        assertEquals("any", table.find("a").orElseThrow().vgpu().gpus().toString());
    }

    @Test
    void shouldLetGuestsWaitForTheEndOfAMove() throws VgpuException {
        add("a", 600, "any");
        assertTrue(table.whenMoved("a").isDone());
        assertTrue(table.whenMoved("nothing").isDone());
        MovePlaces.Plan plan = places.begin("a", SECOND.uuid());
        CompletableFuture<Void> first = table.whenMoved("a");
        assertFalse(first.isDone());
        places.commit(plan);
        assertTrue(first.isDone());
        plan = places.begin("a", FIRST.uuid());
        CompletableFuture<Void> second = table.whenMoved("a");
        assertFalse(second.isDone());
        places.cancel(plan);
        assertTrue(second.isDone());
        plan = places.depart("a");
        CompletableFuture<Void> third = table.whenMoved("a");
        assertFalse(third.isDone());
        places.stay(plan);
        assertTrue(third.isDone());
        places.depart("a");
        CompletableFuture<Void> fourth = table.whenMoved("a");
        table.shut("a", "another broker has it");
        assertFalse(fourth.isDone(), "until it is gone, this broker can send it nowhere");
        Vgpu vgpu = table.find("a").orElseThrow().vgpu();
        table.remove("a");
        assertTrue(fourth.isDone());
        plan = places.expect(vgpu, null, 1);
        CompletableFuture<Void> fifth = table.whenMoved("a");
        assertFalse(fifth.isDone());
        places.refuse(plan);
        assertTrue(fifth.isDone());
        places.expect(vgpu, null, 1);
        List<CompletableFuture<Void>> many = IntStream.range(0, 257).mapToObj(i -> table.whenMoved("a")).toList();
        assertEquals(256, many.stream().filter(guest -> !guest.isDone()).count());
        places.admit(plan);
        assertTrue(many.stream().allMatch(CompletableFuture::isDone));
    }

    @Test
    void shouldKeepItsPlaceWhileTheDatabaseAlreadyNamesTheNewOne() throws VgpuException {
        add("a", 600, "any");
        MovePlaces.Plan plan = places.begin("a", SECOND.uuid());
        table.synchronize(plan.vgpu(), plan.home()); // of a pool
        assertEquals(List.of(FIRST.uuid()), table.home("a"));
        places.requireValid(plan);
    }

    @Test
    void shouldNoticeAMoveThatCannotEndWell() throws VgpuException {
        add("a", 600, "any");
        MovePlaces.Plan plan = places.begin("a", SECOND.uuid());
        table.settle(List.of(FIRST));
        assertTrue(assertThrows(VgpuException.class, () -> places.requireValid(plan)).getMessage()
            .contains("gpu=" + SECOND.uuid()));
        table.settle(BOTH);
        places.requireValid(plan);
        table.shut("a", "another broker has it");
        assertThrows(VgpuException.class, () -> places.requireValid(plan));
        table.remove("a");
        assertThrows(VgpuException.class, () -> places.requireValid(plan));
        places.cancel(plan);
    }

    @Test
    void shouldRefuseWhatCannotMove() throws VgpuException {
        add("swapped", 100, "0", Origin.REST, true);
        assertRefused("its memory may be swapped out; such a vGPU cannot move yet", "swapped", SECOND);
        add("fixed", 100, "0", Origin.SETTINGS, false);
        assertRefused("the broker's settings name the vGPU's GPU", "fixed", SECOND);
        add("several", 100, "0,1");
        assertRefused("a vGPU that moves must have one GPU: vgpu=several", "several", SECOND);
        add("free", 100, "any", Origin.SETTINGS, false);
        String other = table.home("free").getFirst().equals(FIRST.uuid()) ? SECOND.uuid() : FIRST.uuid();
        places.cancel(places.begin("free", other));
    }

    @Test
    void shouldCountAContextForEachSession() throws VgpuException {
        add("a", 600, "0");
        BOTH.forEach(gpu -> table.setContextBytes(gpu.uuid(), 100));
        table.enter("a");
        table.enter("a");
        places.cancel(places.begin("a", SECOND.uuid())); // 600, a spare worker's context and two of sessions
        table.enter("a");
        table.enter("a");
        assertRefused("the GPU's memory is all reserved", "a", SECOND);
    }

    @Test
    void shouldChooseAnotherGpuThatIsNotDrained() throws VgpuException {
        add("a", 600, "any");
        assertEquals(SECOND.uuid(), places.choose("a"));
        table.setDrained(SECOND.uuid(), true);
        assertTrue(assertThrows(VgpuException.class, () -> places.choose("a")).getMessage()
            .contains("a GPU that is drained gets no vGPU: gpu=" + SECOND.uuid()));
        add("named", 100, "0");
        table.setDrained(FIRST.uuid(), true);
        assertEquals(List.of(FIRST.uuid()), table.planChange("a", new VgpuDraft(null, null, 700L, null, null, null,
            null, null).change(table.find("a").orElseThrow().vgpu(), Vgpu.now()), uuid -> 0).home(),
            "a vGPU stays on its drained GPU");
        assertThrows(VgpuException.class, () -> add("late", 100, "0"));
        assertTrue(assertThrows(VgpuException.class, () -> places.choose("named")).getMessage()
            .contains("the vGPU names its GPU: vgpu=named"));
        assertEquals(List.of("a", "named"), places.on(FIRST.uuid()));
    }
}
