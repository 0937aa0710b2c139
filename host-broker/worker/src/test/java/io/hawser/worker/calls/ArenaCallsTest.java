package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HwsDeviceInfo;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapVirtualMemory;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.DeviceArena;
import java.io.IOException;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class ArenaCallsTest {
    private static final long PAGE = DeviceArena.PAGE_BYTES;
    private static final int PAGES = 16;

    private static long window(Guest guest) throws IOException {
        Guest.Received info = guest.call(CudaOpcodes.hwsDeviceInfo, out -> {
            out.fixed(8);
            out.i32(0, 0);
        });
        assertTrue(info.i64(HwsDeviceInfo.ARENA_BYTES_OFFSET) >= PAGES * PAGE);
        return info.i64(HwsDeviceInfo.ARENA_ADDRESS_OFFSET);
    }

    private static int map(Guest guest, int device, long address, long bytes, int last) throws IOException {
        return guest.call(CudaOpcodes.hwsArenaMap, out -> {
            out.fixed(32);
            out.i32(0, device);
            out.i64(8, address);
            out.i64(16, bytes);
            out.i32(24, last);
        }).status();
    }

    private static int map(Guest guest, long address, long bytes) throws IOException {
        return map(guest, 0, address, bytes, 1);
    }

    private static int unmap(Guest guest, long address) throws IOException {
        return guest.call(CudaOpcodes.hwsArenaUnmap, out -> {
            out.fixed(16);
            out.i32(0, 0);
            out.i64(8, address);
        }).status();
    }

    private static Guest.Received kept(Guest guest, long bytes) throws IOException {
        return guest.call(CudaOpcodes.hwsArenaKept, bytes);
    }

    private static long free(Guest guest) throws IOException {
        return guest.call(Guest.MEM_GET_INFO).i64(0);
    }

    @Test
    void shouldChargeSlabsToTheQuota() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            Guest guest = rig.guest();
            long base = window(guest);
            assertEquals(PAGES * PAGE, free(guest), "addresses cost nothing");
            assertEquals(0, map(guest, base, 3 * PAGE));
            assertEquals(0, map(guest, base + 8 * PAGE, 13 * PAGE));
            assertEquals(0, free(guest));
            assertEquals(CudaResult.OUT_OF_MEMORY, map(guest, base + 4 * PAGE, PAGE));
            assertEquals(0, unmap(guest, base));
            assertEquals(3 * PAGE, free(guest));
            assertEquals(0, map(guest, base + 4 * PAGE, PAGE));
        }
    }

    @Test
    void shouldRejectSlabsOutsideTheRules() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            Guest guest = rig.guest();
            long base = window(guest);
            assertEquals(0, map(guest, base + 2 * PAGE, 2 * PAGE));
            long[][] wrong = {{base - PAGE, PAGE}, {base, 0}, {base, -PAGE}, {base, 3 * PAGE}, {base + 3 * PAGE, PAGE},
                {base + 1, PAGE}, {base, PAGE + 512}, {base, Long.MAX_VALUE & -PAGE}, {0, PAGE}, {-PAGE, PAGE},
                {base + (1L << 41), PAGE}};
            for (long[] slab : wrong) {
                assertEquals(CudaResult.INVALID_VALUE, map(guest, slab[0], slab[1]),
                    Long.toHexString(slab[0]) + " " + slab[1]);
            }
            for (int device : new int[] {-1, 1, Integer.MAX_VALUE}) {
                assertEquals(CudaResult.INVALID_VALUE, map(guest, device, base, PAGE, 1));
            }
            for (long address : new long[] {base, base + 3 * PAGE, 0, -1}) {
                assertNotEquals(0, unmap(guest, address));
            }
            assertEquals((PAGES - 2) * PAGE, free(guest));
        }
    }

    @Test
    void shouldRejectWorkOutsideOfSlabs() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            Guest guest = rig.guest();
            long base = window(guest);
            assertEquals(0, map(guest, base, PAGE));
            assertEquals(0, map(guest, base + PAGE, PAGE));
            assertEquals(0, unmap(guest, base));
            for (long address : new long[] {base, base + PAGE - 8, base + 2 * PAGE - 8, base + 2 * PAGE}) {
                assertEquals(CudaResult.INVALID_VALUE, guest.replyTo(guest.send(
                    CudaOpcodes.cuMemsetD8Async, Guest.REPLY | Guest.CREDITED, out -> {
                        out.fixed(32);
                        out.i64(0, address);
                        out.i64(16, 16);
                    })).status());
            }
        }
    }

    @Test
    void shouldWaitForTheWorkOfAllContexts() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            Guest guest = rig.guest();
            guest.launch(guest.function(guest.loadImage("hold"), "hold"), 0, new byte[0]);
            guest.useContext(0);
            long waiting = guest.send(CudaOpcodes.hwsContextsWait, Guest.REPLY);
            assertTrue(window(guest) != 0, "other calls go on");
            rig.gpu().release();
            assertEquals(0, guest.replyTo(waiting).status());
        }
    }

    @Test
    void shouldTellWhetherAStreamHasWork() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            Guest guest = rig.guest();
            assertTrue(isIdle(guest));
            guest.launch(guest.function(guest.loadImage("hold"), "hold"), 0, new byte[0]);
            guest.useContext(0);
            assertFalse(isIdle(guest));
            rig.gpu().release();
            assertEquals(0, guest.replyTo(guest.send(CudaOpcodes.hwsContextsWait, Guest.REPLY)).status());
            assertTrue(isIdle(guest));
        }
    }

    private static boolean isIdle(Guest guest) throws IOException {
        return guest.call(CudaOpcodes.hwsContextsQuery).i32(0) != 0;
    }

    @Test
    void shouldHoldNothingAfterTheSession() throws Exception {
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            long base = window(rig.guest());
            assertEquals(0, map(rig.guest(), base, 2 * PAGE));
            rig.leave();
            assertTrue(rig.join());
            HeapVirtualMemory memory = rig.gpu().virtualMemory();
            assertEquals(Set.of(), memory.live());
            assertTrue(memory.calls().getLast().startsWith("unreserve"));
        }
    }

    @Test
    void shouldAgreeWithAModelOverRandomCalls() throws IOException {
        Random random = new Random(5);
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            Guest guest = rig.guest();
            long base = window(guest);
            TreeMap<Long, Long> slabs = new TreeMap<>();
            long used = 0;
            for (int step = 0; step < 3000; step++) {
                long address = base + (random.nextInt(40) - 2) * PAGE;
                if (random.nextInt(3) == 0) {
                    Long bytes = slabs.remove(address);
                    assertEquals(bytes == null ? CudaResult.INVALID_VALUE : 0, unmap(guest, address));
                    used -= bytes == null ? 0 : bytes;
                } else {
                    long bytes = (random.nextInt(6) - 1) * PAGE;
                    Map.Entry<Long, Long> below = slabs.lowerEntry(address + bytes);
                    boolean isValid = bytes > 0 && address >= base
                        && (below == null || below.getKey() + below.getValue() <= address);
                    boolean fits = used + bytes <= PAGES * PAGE;
                    assertEquals(!isValid ? CudaResult.INVALID_VALUE : fits ? 0 : CudaResult.OUT_OF_MEMORY,
                        map(guest, address, bytes));
                    if (isValid && fits) {
                        slabs.put(address, bytes);
                        used += bytes;
                    }
                }
                assertEquals(PAGES * PAGE - used, free(guest));
            }
        }
    }

    @Test
    void shouldAskForKeptMemoryWhenACallFindsNone() throws Exception {
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            Guest guest = rig.guest();
            long base = window(guest);
            assertEquals(0, map(guest, base, PAGES * PAGE));
            assertEquals(0, kept(guest, PAGES * PAGE).i32(0));
            long waiting = guest.send(CudaOpcodes.hwsArenaMap, Guest.REPLY, out -> {
                out.fixed(32);
                out.i64(8, base + PAGES * PAGE);
                out.i64(16, PAGE);
                out.i32(24, 1);
            });
            assertEquals(1, kept(guest, PAGES * PAGE).i32(0), "the guest learns that its memory is wanted");
            assertEquals(0, unmap(guest, base));
            assertEquals(0, kept(guest, 0).i32(0));
            assertEquals(0, guest.replyTo(waiting).status());
        }
    }

    @Test
    void shouldRefuseWhenNoGuestGivesMemoryBack() throws Exception {
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            Guest guest = rig.guest();
            long base = window(guest);
            assertEquals(0, map(guest, base, PAGES * PAGE));
            assertEquals(0, kept(guest, PAGE).i32(0));
            assertEquals(CudaResult.OUT_OF_MEMORY, map(guest, 0, base + PAGES * PAGE, PAGE, 0), "tries again");
            assertEquals(CudaResult.OUT_OF_MEMORY, map(guest, base + PAGES * PAGE, PAGE));
        }
    }

    @Test
    void shouldRefuseAGuestThatKeepsMoreThanItHolds() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, PAGES * PAGE)) {
            long base = window(rig.guest());
            assertEquals(0, map(rig.guest(), base, PAGE));
            rig.guest().send(CudaOpcodes.hwsArenaKept, Guest.REPLY, PAGE + 1);
            assertTrue(rig.guest().reasonOfLoss().contains("keeps"));
        }
    }
}
