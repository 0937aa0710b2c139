package io.hawser.broker.vgpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PlacementTest {
    private static final String FIRST = "aaaaaaaa-0000-4000-8000-000000000001";
    private static final String SECOND = "bbbbbbbb-0000-4000-8000-000000000002";

    private static GpuLoad gpu(String uuid, int vgpus, int shares, long reservedBytes) {
        return new GpuLoad(new Device("GPU", uuid, 1000, "", ""), vgpus, shares,
            new Reserved(reservedBytes, 0, 0), 0, 0, "",
            vgpus > 0 ? "other" : "", false, false);
    }

    /** A GPU of 1000 bytes, with contexts of 10 bytes for two spare workers. */
    private static GpuLoad swapping(long fixedBytes, long swappableBytes, long largestBytes) {
        return new GpuLoad(new Device("GPU", FIRST, 1000, "", ""), 1, 1,
            new Reserved(fixedBytes, swappableBytes, largestBytes), 2, 10, "", "other", false, false);
    }

    private static GpuLoad failing(GpuLoad gpu) {
        return new GpuLoad(gpu.device(), gpu.vgpus(), gpu.shares(), gpu.reserved(), 0, 0, "", gpu.shared(), true,
            false);
    }

    private static GpuLoad with(GpuLoad gpu, int contexts, long contextBytes) {
        return new GpuLoad(gpu.device(), gpu.vgpus(), gpu.shares(), gpu.reserved(), contexts, contextBytes, "",
            gpu.shared(), false, false);
    }

    private static GpuLoad exclusive(GpuLoad gpu, String vgpu) {
        return new GpuLoad(gpu.device(), gpu.vgpus(), gpu.shares(), gpu.reserved(), 0, 0, vgpu, vgpu, false, false);
    }

    private static Vgpu vgpu(long memoryBytes, String gpus, String mode) throws VgpuException {
        return new VgpuDraft(null, null, memoryBytes, null, mode, gpus, null, null).create("v", Origin.REST,
            Vgpu.now());
    }

    private static Vgpu swappable(long memoryBytes) throws VgpuException {
        return new VgpuDraft(null, null, memoryBytes, null, null, "any", null, null, null, true).create("v",
            Origin.REST, Vgpu.now());
    }

    private static void assertFits(double overcommit, long freeBytes, boolean isSwappable, GpuLoad gpu)
        throws Exception {
        Placement placement = Placement.of("packed", overcommit);
        Vgpu fits = isSwappable ? swappable(freeBytes) : vgpu(freeBytes, "any", "shared");
        assertEquals(List.of(FIRST), placement.place(fits, List.of(gpu)));
        String refused = refusal(overcommit, isSwappable ? swappable(freeBytes + 1)
            : vgpu(freeBytes + 1, "any", "shared"), gpu);
        assertTrue(refused.contains("wantedBytes=" + (freeBytes + 1) + " freeBytes=" + freeBytes + " totalBytes=1000 "
            + "reservedBytes=" + gpu.reservedBytes() + " swappableBytes=" + gpu.reserved().swappableBytes()
            + " largestSwappableBytes=" + gpu.reserved().largestSwappableBytes() + " contexts=2 contextBytes=10"),
            refused);
    }

    private static List<String> place(String policy, Vgpu vgpu, GpuLoad... gpus) throws Exception {
        return Placement.of(policy, 1).place(vgpu, List.of(gpus));
    }

    private static String refusal(double overcommit, Vgpu vgpu, GpuLoad... gpus) {
        return assertThrows(Placement.NoPlaceException.class,
            () -> Placement.of("least-loaded", overcommit).place(vgpu, List.of(gpus))).getMessage();
    }

    /** vGPUs, shares and reserved bytes of each of two GPUs, and the GPU that each policy takes. */
    @ParameterizedTest
    @CsvSource({"0, 0, 0, 0, 0, 0, first, first, first", "1, 100, 0, 1, 50, 900, second, second, second",
        "1, 50, 500, 1, 50, 100, second, first, second", "3, 30, 0, 1, 90, 0, first, second, second",
        "2, 60, 300, 1, 60, 200, second, first, second"})
    void shouldFollowItsPolicy(int vgpus, int shares, long reserved, int vgpus2, int shares2, long reserved2,
        String least, String packed, String spread) throws Exception {
        GpuLoad first = gpu(FIRST, vgpus, shares, reserved);
        GpuLoad second = gpu(SECOND, vgpus2, shares2, reserved2);
        assertEquals(least.equals("first") ? FIRST : SECOND,
            place("least-loaded", vgpu(0, "any", "shared"), first, second).getFirst());
        assertEquals(packed.equals("first") ? FIRST : SECOND,
            place("packed", vgpu(0, "any", "shared"), first, second).getFirst());
        assertEquals(spread.equals("first") ? FIRST : SECOND,
            place("spread", vgpu(0, "any", "shared"), first, second).getFirst());
    }

    @Test
    void shouldTakeTheFullestWhereItFits() throws Exception {
        assertEquals(List.of(SECOND), place("packed", vgpu(600, "any", "shared"), gpu(FIRST, 1, 10, 500),
            gpu(SECOND, 1, 10, 400)));
    }

    @Test
    void shouldAvoidGpusWhoseWorkersDoNotStart() throws Exception {
        assertEquals(List.of(SECOND), place("least-loaded", vgpu(0, "any", "shared"), failing(gpu(FIRST, 0, 0, 0)),
            gpu(SECOND, 5, 500, 900)));
        assertEquals(List.of(FIRST), place("least-loaded", vgpu(0, "any", "shared"), failing(gpu(FIRST, 0, 0, 0))));
    }

    @Test
    void shouldKeepReservationsAndContextsWithinTheMemory() throws Exception {
        assertEquals(List.of(FIRST), place("spread", vgpu(1000, "any", "shared"), gpu(FIRST, 0, 0, 0)));
        assertEquals(List.of(FIRST), place("spread", vgpu(0, "any", "shared"), gpu(FIRST, 1, 1, 1000)),
            "best effort must fit");
        String full = refusal(1, vgpu(600, "any", "shared"), gpu(FIRST, 1, 1, 500), gpu(SECOND, 1, 1, 401));
        assertTrue(full.contains("gpu=" + FIRST + " wantedBytes=600 freeBytes=500") && full.contains("gpu=" + SECOND
            + " wantedBytes=600 freeBytes=599"), full);
        // Three contexts of 100 bytes: two spare workers and the vGPU's first worker.
        assertEquals(List.of(FIRST), place("spread", vgpu(700, "any", "shared"), with(gpu(FIRST, 0, 0, 0), 2, 100)));
        String contexts = refusal(1, vgpu(701, "any", "shared"), with(gpu(FIRST, 0, 0, 0), 2, 100));
        assertTrue(contexts.contains("freeBytes=700") && contexts.contains("contexts=2 contextBytes=100"), contexts);
    }

    @Test
    void shouldPromiseMoreOnlyToSwappableVgpusAndOnlyAsFarAsOvercommitAllows() throws Exception {
        assertFits(1.5, 1000 - 30 - 300, false, swapping(300, 0, 0));
        assertFits(1.5, 1000 - 30 - 300, true, swapping(300, 0, 0));
        assertFits(1.5, 1500 - 30 - 300 - 800, true, swapping(300, 800, 600));
        assertFits(16, 1000 - 30 - 300, true, swapping(300, 2000, 600));
    }

    @Test
    void shouldKeepRoomForTheLargestSwappableVgpuBesideTheOthers() throws Exception {
        assertFits(1.5, 1000 - 30 - 300 - 600, false, swapping(300, 800, 600));
        assertFits(1.5, 1500 - 30 - 100 - 1350, false, swapping(100, 1350, 450));
        Placement placement = Placement.of("packed", 1.5);
        assertEquals(List.of(FIRST), placement.place(vgpu(0, "any", "shared"), List.of(swapping(900, 0, 0))));
    }

    @Test
    void shouldCountSwappableVgpusAsOthersWithoutOvercommit() throws Exception {
        for (boolean isSwappable : new boolean[] {false, true}) {
            assertFits(1, 1000 - 30 - 300 - 400, isSwappable, swapping(300, 400, 200));
        }
    }

    @Test
    void shouldLeaveRoomForContextsBesideSwappableVgpus() {
        Placement half = Placement.of("spread", 1.5);
        assertEquals(8, half.contextRoom(swapping(300, 1000, 600)), "the memory must limit the contexts");
        assertEquals(6, half.contextRoom(swapping(300, 1120, 400)), "the overcommit must limit the contexts");
        assertEquals(0, half.contextRoom(swapping(300, 1200, 700)));
        assertEquals(28, Placement.of("spread", 1).contextRoom(swapping(300, 400, 200)));
        assertNull(half.contextObjection(swapping(370, 1100, 600)));
        String full = half.contextObjection(swapping(371, 1000, 600));
        assertTrue(full.contains("largestSwappableBytes=600 contexts=2"), full);
        assertNotNull(half.contextObjection(swapping(370, 1101, 600)));
    }

    @Test
    void shouldKeepForOthersWhatTheyNeedAtTheSameTime() {
        Reserved reserved = new Reserved(300, 400, 200);
        assertEquals(500, Placement.of("spread", 1.5).keptBytes(reserved));
        assertEquals(700, Placement.of("spread", 1).keptBytes(reserved), "without overcommit nothing may swap");
    }

    @Test
    void shouldKeepExclusiveGpusForOne() throws Exception {
        assertEquals(List.of(SECOND), place("packed", vgpu(0, "any", "shared"),
            exclusive(gpu(FIRST, 1, 100, 500), "alone"), gpu(SECOND, 0, 0, 0)));
        assertEquals(List.of(SECOND), place("packed", vgpu(0, "any", "exclusive"), gpu(FIRST, 1, 1, 500),
            gpu(SECOND, 0, 0, 0)));
        assertTrue(refusal(1, vgpu(0, "0", "shared"), exclusive(gpu(FIRST, 1, 1, 0), "alone")).contains(
            "a vGPU has the GPU exclusively: gpu=" + FIRST + " vgpu=alone"));
        assertTrue(refusal(1, vgpu(0, "0", "exclusive"), gpu(FIRST, 1, 1, 0)).contains(
            "must have no other vGPU: gpu=" + FIRST + " vgpus=1 vgpu=other"));
    }

    @Test
    void shouldGiveSeveralInTheOrderOfTheListOrNone() throws Exception {
        assertEquals(List.of(SECOND, FIRST), place("spread", vgpu(500, "1,0", "shared"), gpu(FIRST, 0, 0, 0),
            gpu(SECOND, 0, 0, 0)));
        assertEquals(List.of(FIRST, SECOND), place("spread", vgpu(500, "all", "shared"), gpu(FIRST, 0, 0, 0),
            gpu(SECOND, 0, 0, 0)));
        assertTrue(refusal(1, vgpu(500, "all", "shared"), gpu(FIRST, 0, 0, 0), gpu(SECOND, 1, 1, 501)).contains(
            "gpu=" + SECOND), "a vGPU on all GPUs must fit on each GPU");
        assertTrue(refusal(1, vgpu(0, "2", "shared"), gpu(FIRST, 0, 0, 0)).contains("named once: gpu=2"));
    }

    @Test
    void shouldHaveRoomForOneMoreContext() {
        Placement placement = Placement.of("spread", 1);
        assertNull(placement.contextObjection(with(gpu(FIRST, 1, 1, 800), 1, 100)));
        assertNull(placement.contextObjection(with(gpu(FIRST, 1, 1, 1000), 5, 0)),
            "a context of unknown cost must fit");
        assertNotNull(placement.contextObjection(with(gpu(FIRST, 1, 1, 801), 1, 100)));
    }

    @Test
    void shouldRefuseAnOvercommitThatIsNone() {
        for (double overcommit : new double[] {0, 0.99, -1, 16.01, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThrows(IllegalArgumentException.class, () -> Placement.of("packed", overcommit), "" + overcommit);
        }
        Placement.of("packed", 1);
        Placement.of("packed", 16);
    }
}
