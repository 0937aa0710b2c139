package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsDeviceInfo;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.DeviceArena;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Sessions whose memory goes to a keeper and comes back, on the software GPU. */
@Timeout(120)
class SwapTest {
    private static final long PAGE = DeviceArena.PAGE_BYTES;
    private static final long CHUNK = 64L << 20; // the keeper's unit
    private static final int BYTES = 512 * 1024; // in one record
    private static final int PAGES = 24;
    private static final int STEPS = 400;

    private Rig keeper;
    private Rig session;
    private Guest guest;
    private long base;

    private static Rig rig() throws IOException {
        return new Rig(Carrier.TCP, Backends.open("software", new BackendOptions(0, 1, 1, List.of())));
    }

    @BeforeEach
    void open() throws IOException {
        keeper = rig();
        session = rig();
    }

    @AfterEach
    void close() throws IOException {
        session.close();
        keeper.close();
    }

    /** Starts the keeper, and a session that it serves. */
    private void start(long keeperBytes, long sessionBytes, boolean isOut) throws IOException {
        keeper.tell("{\"type\":\"keep\",\"maxBytes\":" + keeperBytes + ",\"aheadBytes\":0}", -1);
        begin(session, sessionBytes, isOut);
    }

    private void begin(Rig rig, long sessionBytes, boolean isOut) throws IOException {
        int[] pair = Rig.socketPair();
        keeper.tell("{\"type\":\"keepfor\",\"maxBytes\":" + sessionBytes + "}", pair[0]);
        rig.tell("{\"type\":\"keeper\",\"out\":" + isOut + "}", pair[1]);
        rig.assign(0);
        guest = rig.guest();
        guest.next(); // WELCOME
    }

    private void enter() throws IOException {
        guest.createContext();
        Guest.Received info = guest.call(CudaOpcodes.hwsDeviceInfo, out -> {
            out.fixed(8);
            out.i32(0, 0);
        });
        base = info.i64(HwsDeviceInfo.ARENA_ADDRESS_OFFSET);
    }

    private void map(long address, long bytes) throws IOException {
        assertEquals(0, guest.call(CudaOpcodes.hwsArenaMap, out -> {
            out.fixed(32);
            out.i32(0, 0);
            out.i64(8, address);
            out.i64(16, bytes);
            out.i32(24, 1);
        }).status());
        guest.send(CudaOpcodes.hwsArenaAllocated, 0, out -> {
            out.fixed(24);
            out.i32(0, 0);
            out.i64(8, address);
            out.i64(16, bytes);
        });
    }

    private void unmap(long address) throws IOException {
        assertEquals(0, guest.call(CudaOpcodes.hwsArenaUnmap, out -> {
            out.fixed(16);
            out.i32(0, 0);
            out.i64(8, address);
        }).status());
    }

    private JsonNode expect(String type) throws IOException {
        JsonNode message = session.expectAny(Set.of(type, "ended"));
        assertEquals(type, message.path("type").asText(), message::toString);
        return message;
    }

    private void order(String type, long bytes) throws IOException {
        session.tell("{\"type\":\"" + type + "\",\"bytes\":" + bytes + "}", -1);
    }

    private JsonNode swapOut() throws IOException {
        guest.call(Guest.CTX_SYNCHRONIZE); // the worker has all earlier records
        order("swapout", Long.MAX_VALUE);
        return expect("swappedout");
    }

    private JsonNode swapIn() throws IOException {
        order("swapin", Long.MAX_VALUE);
        return expect("swappedin");
    }

    /** Issues a read, which waits, and lets the memory come back. */
    private byte[] readWhileOut(long address, int bytes) throws IOException {
        long request = guest.send(Guest.COPY_DTOH, Guest.REPLY, address, bytes, 0);
        expect("swapwanted");
        assertEquals("", swapIn().path("problem").asText());
        return guest.collect(request, bytes);
    }

    @Test
    void shouldBringSlabsBackAtTheirAddresses() throws IOException {
        start(4 * CHUNK, 4 * CHUNK, false);
        enter();
        byte[] data = Guest.random(BYTES);
        map(base, 3 * PAGE);
        map(base + 8 * PAGE, PAGE);
        guest.write(base + 2 * PAGE + 512, 0, data);
        JsonNode out = swapOut();
        assertEquals("", out.path("stays").asText());
        assertEquals(4 * PAGE, out.path("bytes").asLong());
        while (expect("stats").path("deviceBytes").asLong() != 0) {
            assertTrue(session.lastStats().path("deviceBytes").asLong() > 0);
        }
        assertArrayEquals(data, readWhileOut(base + 2 * PAGE + 512, data.length));
        assertArrayEquals(new byte[512], guest.read(base + 8 * PAGE, 512, 0));
    }

    @Test
    void shouldLetASessionBeginWithoutRoom() throws IOException {
        start(CHUNK, CHUNK, true);
        long request = guest.send(CudaOpcodes.hwsDeviceInfo, Guest.REPLY, out -> {
            out.fixed(8);
            out.i32(0, 0);
        });
        expect("swapwanted");
        assertEquals("", swapIn().path("problem").asText());
        guest.replyTo(request);
    }

    @Test
    void shouldStayWhenTheKeeperHasNoRoom() throws IOException {
        start(CHUNK, CHUNK, false);
        enter();
        byte[] data = Guest.random(BYTES);
        map(base, PAGE);
        map(base + PAGE, CHUNK);
        guest.write(base, 0, data);
        JsonNode out = swapOut();
        assertEquals("a slab cannot be copied: CUresult=2", out.path("stays").asText());
        assertEquals(0, out.path("bytes").asLong());
        assertArrayEquals(data, guest.read(base, data.length, 0));
    }

    @Test
    void shouldKeepEachSessionToItsLimit() throws IOException {
        start(8 * CHUNK, PAGE, false);
        enter();
        map(base, 2 * PAGE);
        assertEquals("a slab cannot be copied: CUresult=2", swapOut().path("stays").asText());
    }

    @Test
    void shouldForgetSlabsOfASessionThatHasEnded() throws IOException {
        start(CHUNK, CHUNK, false);
        enter();
        map(base, PAGE);
        assertEquals("", swapOut().path("stays").asText());
        guest.close();
        session.expect("ended");
        session.join();
        try (Rig next = rig()) {
            begin(next, CHUNK, false);
            enter();
            map(base, PAGE);
            Rig before = session;
            session = next;
            String stays = swapOut().path("stays").asText();
            for (int i = 0; i < 100 && !stays.isEmpty(); i++) { // the keeper learns of the end by the socket
                stays = swapOut().path("stays").asText();
            }
            session = before;
            assertEquals("", stays);
        }
    }

    @Test
    void shouldEndASessionWhoseKeeperHasGone() throws IOException {
        start(CHUNK, CHUNK, false);
        enter();
        map(base, PAGE);
        assertEquals("", swapOut().path("stays").asText());
        keeper.tell("{\"type\":\"end\",\"reason\":\"test\"}", -1);
        keeper.expect("ended");
        assertEquals("the keeper of its swapped memory has ended", session.expect("ended").path("reason").asText());
    }

    @Test
    void shouldGoOnWithoutAKeeperThatHasNothing() throws IOException {
        start(CHUNK, CHUNK, false);
        enter();
        byte[] data = Guest.random(BYTES);
        map(base, PAGE);
        guest.write(base, 0, data);
        assertEquals("", swapOut().path("stays").asText());
        readWhileOut(base, 8);
        keeper.tell("{\"type\":\"end\",\"reason\":\"test\"}", -1);
        keeper.expect("ended");
        assertTrue(keeper.join());
        assertArrayEquals(data, guest.read(base, data.length, 0));
        assertEquals("the keeper of the GPU has ended", swapOut().path("stays").asText());
        assertArrayEquals(data, guest.read(base, data.length, 0));
    }

    @Test
    void shouldStayWithMemoryThatOthersMayUse() throws IOException {
        start(CHUNK, CHUNK, false);
        enter();
        map(base, PAGE);
        assertEquals(0, guest.call(CudaOpcodes.hwsMemCreate, out -> {
            out.fixed(32);
            out.i64(0, guest.newId(HandleKind.MEM_ALLOCATION));
            out.i64(8, PAGE);
            out.i32(16, 0);
        }).status());
        assertEquals("it maps memory itself", swapOut().path("stays").asText());
    }

    /** Slabs move as far as the broker lets them, and the session waits meanwhile. */
    @Test
    void shouldMoveAsFarAsItMay() throws IOException {
        start(2 * CHUNK, 2 * CHUNK, false);
        enter();
        byte[] data = Guest.random(BYTES);
        for (int slab = 0; slab < 4; slab++) {
            map(base + slab * 2L * PAGE, 2 * PAGE);
        }
        guest.write(base + 6 * PAGE, 0, data);
        guest.call(Guest.CTX_SYNCHRONIZE);
        order("swapout", 0);
        assertEquals(0, expect("swapmoved").path("bytes").asLong());
        long request = guest.send(Guest.COPY_DTOH, Guest.REPLY, base + 6 * PAGE, data.length, 0);
        order("swapout", 3 * PAGE);
        assertEquals(2 * PAGE, expect("swapmoved").path("bytes").asLong(), "whole pieces");
        order("swapout", 8 * PAGE);
        assertEquals(8 * PAGE, expect("swappedout").path("bytes").asLong());
        expect("swapwanted");
        order("swapin", 4 * PAGE);
        assertEquals(4 * PAGE, expect("swapmoved").path("bytes").asLong());
        order("swapin", 8 * PAGE);
        JsonNode in = expect("swappedin");
        assertEquals("", in.path("problem").asText());
        assertEquals(8 * PAGE, in.path("bytes").asLong());
        assertArrayEquals(data, guest.collect(request, data.length));
    }

    /** Random allocations, frees, writes and swaps agree with a model. */
    @Test
    void shouldAgreeWithAModel() throws IOException {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        start(CHUNK, PAGES * PAGE, false);
        enter();
        Map<Integer, byte[]> model = new TreeMap<>(); // the first 512 bytes of each page that is mapped
        boolean isOut = false;
        for (int step = 0; step < STEPS; step++) {
            String context = "seed=" + seed + " step=" + step;
            int page = random.nextInt(PAGES);
            long address = base + page * PAGE;
            if (random.nextInt(4) == 0 && !isOut) {
                assertEquals("", swapOut().path("stays").asText(), context);
                isOut = true;
                continue;
            }
            if (isOut) {
                assertEquals("", swapIn().path("problem").asText(), context);
                isOut = false;
            }
            if (!model.containsKey(page)) {
                map(address, PAGE);
                model.put(page, new byte[512]);
            } else if (random.nextInt(3) == 0) {
                unmap(address);
                model.remove(page);
            } else if (random.nextBoolean()) {
                byte[] data = Guest.random(512);
                guest.write(address, 0, data);
                model.put(page, data);
            } else {
                byte[] found = guest.read(address, 512, 0);
                assertTrue(Arrays.equals(model.get(page), found), context);
            }
        }
    }
}
