package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HwsDeviceInfo;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.LockableGpu;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.DeviceArena;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Sessions that are out and whose process a helper moves: calls of their GPU then wait, as with NVIDIA's driver. */
@Timeout(30)
class DeepSwapTest {
    private static final long PAGE = DeviceArena.PAGE_BYTES;
    private static final long CHUNK = 64L << 20; // the keeper's unit
    private static final int BYTES = 4096;
    private static final int LARGE_BYTES = 1 << 20; // more than the pool has for a record at the begin

    private final LockableGpu gpu =
        new LockableGpu(Backends.open("software", new BackendOptions(0, 1, 1, List.of())));
    private Rig keeper;
    private Rig session;
    private Guest guest;
    private long base;
    private byte[] data;

    @BeforeEach
    void swapOut() throws IOException {
        keeper = new Rig(Carrier.TCP, Backends.open("software", new BackendOptions(0, 1, 1, List.of())));
        session = new Rig(Carrier.TCP, gpu.backend());
        keeper.tell("{\"type\":\"keep\",\"maxBytes\":" + CHUNK + ",\"aheadBytes\":0}", -1);
        int[] pair = Rig.socketPair();
        keeper.tell("{\"type\":\"keepfor\",\"maxBytes\":" + CHUNK + "}", pair[0]);
        session.tell("{\"type\":\"keeper\",\"out\":false}", pair[1]);
        session.assign(0);
        guest = session.guest();
        guest.next(); // WELCOME
        guest.createContext();
        base = guest.call(CudaOpcodes.hwsDeviceInfo, out -> {
            out.fixed(8);
            out.i32(0, 0);
        }).i64(HwsDeviceInfo.ARENA_ADDRESS_OFFSET);
        assertEquals(0, guest.call(CudaOpcodes.hwsArenaMap, out -> {
            out.fixed(32);
            out.i32(0, 0);
            out.i64(8, base);
            out.i64(16, PAGE);
            out.i32(24, 1);
        }).status());
        guest.send(CudaOpcodes.hwsArenaAllocated, 0, out -> {
            out.fixed(24);
            out.i32(0, 0);
            out.i64(8, base);
            out.i64(16, PAGE);
        });
        data = Guest.random(BYTES);
        guest.write(base, 0, data);
        // From now on the statistics ask the driver's pool for its memory.
        long pooled = guest.call(CudaOpcodes.cuMemAllocAsync, 512, 0).i64(0);
        guest.send(CudaOpcodes.cuMemFreeAsync, Guest.CREDITED, pooled, 0);
        guest.call(Guest.CTX_SYNCHRONIZE);
        session.tell("{\"type\":\"swapout\",\"bytes\":" + Long.MAX_VALUE + "}", -1);
        assertEquals("", expect("swappedout").path("stays").asText());
    }

    @AfterEach
    void close() throws IOException {
        gpu.unlock();
        session.close();
        keeper.close();
    }

    private JsonNode expect(String type) throws IOException {
        JsonNode message = session.expectAny(Set.of(type, "ended"));
        assertEquals(type, message.path("type").asText(), message::toString);
        return message;
    }

    private void tellToFreeze(boolean isFrozen) throws IOException {
        session.tell("{\"type\":\"swapfreeze\",\"frozen\":" + isFrozen + "}", -1);
    }

    /** The helper has moved the session's process to the host. */
    private void sink() throws IOException {
        tellToFreeze(true);
        assertEquals("", expect("swapfrozen").path("stays").asText());
        gpu.lock();
    }

    private void swapIn() throws IOException {
        session.tell("{\"type\":\"swapin\",\"bytes\":" + Long.MAX_VALUE + "}", -1);
        assertEquals("", expect("swappedin").path("problem").asText());
    }

    private long query() throws IOException {
        return guest.send(CudaOpcodes.cuStreamQuery, Guest.REPLY, 0);
    }

    @Test
    void shouldMakeNoCallWhileItsProcessIsAway() throws IOException {
        sink();
        expect("stats"); // the worker has looked at its memory many times
        expect("stats");
        assertEquals(List.of(), gpu.blocked());
        long read = guest.send(Guest.COPY_DTOH, Guest.REPLY, base, BYTES, 0);
        expect("swapwanted");
        assertEquals(List.of(), gpu.blocked());
        gpu.unlock();
        swapIn();
        assertArrayEquals(data, guest.collect(read, BYTES));
    }

    @Test
    void shouldHoldQuestionsAboutWorkOnlyWhileFrozen() throws IOException {
        assertEquals(0, guest.replyTo(query()).status(), "its memory is out");
        sink();
        long query = query();
        expect("swapwanted");
        assertEquals(List.of(), gpu.blocked());
        gpu.unlock();
        swapIn();
        assertEquals(0, guest.replyTo(query).status());
    }

    @Test
    void shouldAnswerQuestionsAgainWhenItsProcessHasStayed() throws Exception {
        tellToFreeze(true);
        assertEquals("", expect("swapfrozen").path("stays").asText());
        int before = gpu.calls("getAttribute"); // by the statistics, which make none while the session is frozen
        tellToFreeze(false);
        for (int i = 0; i < 1000 && gpu.calls("getAttribute") == before; i++) {
            Thread.sleep(10); // the guest's socket would overtake the broker's
        }
        assertEquals(0, guest.replyTo(query()).status());
        swapIn();
        assertArrayEquals(data, guest.read(base, BYTES, 0));
    }

    @Test
    void shouldNotFreezeWhileItsGuestWaits() throws IOException {
        long read = guest.send(Guest.COPY_DTOH, Guest.REPLY, base, BYTES, 0);
        expect("swapwanted");
        tellToFreeze(true);
        assertEquals("its guest waits for it", expect("swapfrozen").path("stays").asText());
        swapIn();
        assertArrayEquals(data, guest.collect(read, BYTES));
        tellToFreeze(true);
        assertEquals("its guest waits for it", expect("swapfrozen").path("stays").asText(), "it is on the GPU");
        assertArrayEquals(data, guest.read(base, BYTES, 0));
    }

    /** The memory for the record itself needs a call of the GPU, so the session asks before. */
    @Test
    void shouldAskBeforeItNeedsMemoryForARecord() throws IOException {
        sink();
        byte[] large = Guest.random(LARGE_BYTES / 2);
        guest.write(base, 0, large);
        expect("swapwanted");
        gpu.unlock();
        swapIn();
        assertArrayEquals(large, guest.read(base, large.length, 0));
    }

    @Test
    void shouldEndWithoutItsGpu() throws IOException {
        sink();
        session.tell("{\"type\":\"end\",\"reason\":\"test\"}", -1);
        assertEquals("test", session.expect("ended").path("reason").asText());
        assertTrue(session.join());
        assertEquals(List.of(), gpu.blocked());
    }

    @Test
    void shouldEndWithItsGuest() throws IOException {
        sink();
        guest.close();
        session.expect("ended");
        assertTrue(session.join());
        assertEquals(List.of(), gpu.blocked());
    }

    @Test
    void shouldEndWithItsKeeper() throws IOException {
        sink();
        keeper.tell("{\"type\":\"end\",\"reason\":\"test\"}", -1);
        keeper.expect("ended");
        assertEquals("the keeper of its swapped memory has ended", session.expect("ended").path("reason").asText());
        session.join();
        assertEquals(List.of(), gpu.blocked());
    }
}
