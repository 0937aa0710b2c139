package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsDeviceInfo;
import io.hawser.shm.events.EventPage;
import io.hawser.shm.os.Descriptors;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapMemorySharing;
import io.hawser.worker.fixture.HeapVirtualMemory;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.DeviceArena;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class IpcCallsTest {
    private static final String HANDLE = "bc01000000000000" + "00".repeat(56);
    private static final long UNIT = HeapVirtualMemory.UNIT;
    private static final String FIRST = "0000000000000000000000000000000a";
    private static final String SECOND = "0000000000000000000000000000000b";
    private static final String OFFSET_64 = "4000000000000000";

    private static void tell(Rig rig, String json) throws IOException {
        rig.broker().write(json.replace('\'', '"').getBytes(StandardCharsets.UTF_8));
    }

    private static void found(Rig rig, String handle, long bytes) throws IOException {
        String name = rig.expect("find").path("name").asText();
        tell(rig, "{'type':'found','name':'" + name + "','handle':'" + handle + "','column':0,'bytes':" + bytes + "}");
    }

    private static String name(Guest.Received reply) {
        return HexFormat.of().toHexDigits(reply.i64(8)) + HexFormat.of().toHexDigits(reply.i64(0));
    }

    private static Guest.Received share(Rig rig, long address) throws IOException {
        long request = rig.guest().send(CudaOpcodes.hwsIpcShare, Guest.REPLY, address, UNIT);
        JsonNode share = rig.expect("share");
        assertEquals(128, share.path("handle").asText().length());
        tell(rig, "{'type':'shared','name':'" + share.path("name").asText() + "','kept':true}");
        Guest.Received reply = rig.guest().replyTo(request);
        assertEquals(0, reply.status());
        assertEquals(share.path("name").asText(), name(reply));
        return reply;
    }

    private static long ask(Guest guest, long id) throws IOException {
        return guest.send(CudaOpcodes.hwsIpcOpen, Guest.REPLY, id, 5, 6);
    }

    private static Guest.Received open(Rig rig, long id, long bytes) throws IOException {
        long request = ask(rig.guest(), id);
        found(rig, HANDLE, bytes);
        return rig.guest().replyTo(request);
    }

    private static int fill(Guest guest, long address, long bytes) throws IOException {
        byte[] data = new byte[(int) bytes];
        guest.write(address, 0, data);
        return guest.call(Guest.CTX_SYNCHRONIZE).status();
    }

    @Test
    void shouldNameMemoryOnceAndNeverRevealDriverHandle() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long one = guest.allocate(100);
            long two = guest.allocate(200);
            Guest.Received first = share(rig, one);
            Guest.Received again = guest.call(CudaOpcodes.hwsIpcShare, one, UNIT); // answered without the broker
            assertEquals(name(first), name(again));
            assertNotEquals(name(first), name(share(rig, two)));
            assertEquals(CudaResult.INVALID_VALUE, guest.call(CudaOpcodes.hwsIpcShare, one + 8, UNIT).status());
            assertEquals(CudaResult.INVALID_VALUE, guest.call(CudaOpcodes.hwsIpcShare, 0x1234, -1).status());
            long id = guest.newId(HandleKind.IPC_MEMORY);
            assertEquals(CudaResult.INVALID_CONTEXT,
                guest.call(CudaOpcodes.hwsIpcOpen, id, first.i64(0), first.i64(8)).status(), "memory of its own");
            assertEquals(List.of("share", "share", "share"), rig.gpu().memorySharing().calls());
        }
    }

    @Test
    void shouldFailWhenBrokerKeepsNoName() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            long address = rig.guest().allocate(100);
            long request = rig.guest().send(CudaOpcodes.hwsIpcShare, Guest.REPLY, address, UNIT);
            String name = rig.expect("share").path("name").asText();
            tell(rig, "{'type':'shared','name':'" + name + "','kept':false}");
            assertEquals(CudaResult.OUT_OF_MEMORY, rig.guest().replyTo(request).status());
            assertNotEquals(name, name(share(rig, address)));
        }
    }

    @Test
    void shouldOpenOnlyTheLengthThatTheDriverMaps() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 1 << 20)) {
            Guest guest = rig.guest();
            long free = guest.call(Guest.MEM_GET_INFO).i64(0);
            long id = guest.newId(HandleKind.IPC_MEMORY);
            Guest.Received opened = open(rig, id, Long.MAX_VALUE);
            assertEquals(0, opened.status());
            assertEquals(HeapMemorySharing.OPENED_ADDRESS, opened.i64(0));
            assertEquals(HeapMemorySharing.MAPPED_BYTES, opened.i64(8), "its session has reported a longer one");
            assertEquals(free, guest.call(Guest.MEM_GET_INFO).i64(0), "it costs nothing of the quota");
            long second = guest.newId(HandleKind.IPC_MEMORY);
            assertEquals(CudaResult.INVALID_VALUE, open(rig, second, 100).status(), "open already");
            assertEquals(0, guest.call(CudaOpcodes.hwsIpcClose, id).status());
            assertEquals(CudaResult.INVALID_VALUE, fill(guest, HeapMemorySharing.OPENED_ADDRESS, 64));
            assertEquals(CudaResult.INVALID_HANDLE, guest.call(CudaOpcodes.hwsIpcClose, id).status(), "closed");
            assertEquals(List.of("open", "open", "close +0", "close +0"), rig.gpu().memorySharing().calls());
            assertEquals(0, open(rig, guest.newId(HandleKind.IPC_MEMORY), 100).status(), "again");
        }
    }

    private static void expectRelease(Rig rig) throws IOException {
        assertEquals("00000000000000060000000000000005", rig.expect("release").path("name").asText());
    }

    @Test
    void shouldPayForFreedMemoryUntilTheBrokerDoes() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 1 << 20)) {
            Guest guest = rig.guest();
            long all = guest.call(Guest.MEM_GET_INFO).i64(0);
            long address = guest.allocate(4096);
            long request = guest.send(CudaOpcodes.hwsIpcShare, Guest.REPLY, address, UNIT);
            JsonNode share = rig.expect("share");
            String name = share.path("name").asText();
            assertEquals(0, share.path("column").asInt());
            assertEquals(all - guest.call(Guest.MEM_GET_INFO).i64(0), share.path("chargedBytes").asLong());
            tell(rig, "{'type':'shared','name':'" + name + "','kept':true}");
            assertEquals(0, guest.replyTo(request).status());
            guest.send(Guest.MEM_FREE, 0, address);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(name, rig.expect("unshare").path("name").asText());
            assertEquals(all - share.path("chargedBytes").asLong(), guest.call(Guest.MEM_GET_INFO).i64(0));
            tell(rig, "{'type':'unshared','name':'" + name + "'}");
            while (guest.call(Guest.MEM_GET_INFO).i64(0) != all) {
                Thread.onSpinWait(); // ends when the message has come
            }
        }
    }

    @Test
    void shouldReleaseWhatItClosesOrCannotOpen() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long request = ask(guest, guest.newId(HandleKind.IPC_MEMORY));
            found(rig, "77".repeat(64), 100);
            assertEquals(CudaResult.INVALID_VALUE, guest.replyTo(request).status());
            expectRelease(rig);
            long id = guest.newId(HandleKind.IPC_MEMORY);
            assertEquals(0, open(rig, id, 100).status());
            assertEquals(0, guest.call(CudaOpcodes.hwsIpcClose, id).status());
            expectRelease(rig);
            assertEquals(CUresult.CUDA_ERROR_MAP_FAILED,
                openEvent(rig, guest.newId(HandleKind.EVENT), -1, 8).status(), "memory is no event");
            expectRelease(rig);
        }
    }

    @Test
    void shouldNotFreeOpenedMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long address = open(rig, guest.newId(HandleKind.IPC_MEMORY), 100).i64(0);
            guest.send(Guest.MEM_FREE, 0, address);
            assertEquals(CudaResult.INVALID_VALUE, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(CudaResult.INVALID_VALUE, guest.call(CudaOpcodes.hwsIpcShare, address, UNIT).status());
        }
    }

    @Test
    void shouldRefuseUnknownNamesAndForgedHandles() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long request = ask(guest, guest.newId(HandleKind.IPC_MEMORY));
            String name = rig.expect("find").path("name").asText();
            assertEquals("00000000000000060000000000000005", name);
            tell(rig, "{'type':'notfound','name':'" + name + "'}");
            assertEquals(CudaResult.INVALID_VALUE, guest.replyTo(request).status());
            request = ask(guest, guest.newId(HandleKind.IPC_MEMORY));
            found(rig, "77".repeat(64), 100);
            assertEquals(CudaResult.INVALID_VALUE, guest.replyTo(request).status(), "the driver does not know it");
            assertEquals(CudaResult.INVALID_VALUE, open(rig, guest.newId(HandleKind.IPC_MEMORY), 0).status(),
                "an event is not memory");
            assertEquals(List.of(), rig.gpu().memorySharing().calls());
        }
    }

    private static void found(Rig rig, int descriptor, long bytes) throws IOException {
        String name = rig.expect("find").path("name").asText();
        rig.broker().write(("{'type':'found','name':'" + name + "','handle':'00','column':0,'bytes':" + bytes + "}")
            .replace('\'', '"').getBytes(StandardCharsets.UTF_8), descriptor);
    }

    private static long interprocessEvent(Guest guest) throws IOException {
        long event = guest.newId(HandleKind.EVENT);
        guest.send(CudaOpcodes.cuEventCreate, 0, event, 6);
        return event;
    }

    private static Guest.Received openEvent(Rig rig, long id, int descriptor, long bytes) throws IOException {
        long request = rig.guest().send(CudaOpcodes.hwsIpcOpenEvent, Guest.REPLY, id, 5, 6);
        found(rig, descriptor, bytes);
        return rig.guest().replyTo(request);
    }

    private static Guest.Received shareEvent(Rig rig, long event, int descriptor) throws IOException {
        long request = rig.guest().send(CudaOpcodes.hwsIpcShareEvent, Guest.REPLY, event);
        JsonNode share = rig.expect("share");
        assertEquals(0, share.path("bytes").asLong());
        kept(rig, share);
        found(rig, descriptor, 0);
        Guest.Received reply = rig.guest().replyTo(request);
        assertEquals(share.path("name").asText(), name(reply));
        return reply;
    }

    private static void record(Guest guest, long event, long stream) throws IOException {
        guest.send(CudaOpcodes.cuEventRecordWithFlags, Guest.CREDITED, event, stream, 0);
    }

    private static void waitFor(Guest guest, long stream, long event) throws IOException {
        guest.send(CudaOpcodes.cuStreamWaitEvent, Guest.CREDITED, stream, event, 0);
    }

    private static int query(Guest guest, long event) throws IOException {
        return guest.call(CudaOpcodes.cuEventQuery, event).status();
    }

    private static void awaitClosedPages(Rig rig, int before) throws IOException {
        while (rig.gpu().openPages() > before) { // the test's limit of time ends this
            rig.guest().synchronize(0);
        }
    }

    @Test
    void shouldNameEventsOnceAndOpenThoseOfOthers() throws IOException {
        int descriptor = EventPage.create();
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            int before = rig.gpu().openPages();
            long event = interprocessEvent(guest);
            Guest.Received first = shareEvent(rig, event, descriptor);
            assertEquals(name(first), name(guest.call(CudaOpcodes.hwsIpcShareEvent, event)));
            assertEquals(CudaResult.INVALID_CONTEXT, guest.call(CudaOpcodes.hwsIpcOpenEvent,
                guest.newId(HandleKind.EVENT), first.i64(0), first.i64(8)).status(), "an event of its own");
            long plain = guest.newId(HandleKind.EVENT);
            guest.send(CudaOpcodes.cuEventCreate, 0, plain, 2);
            assertEquals(CudaResult.INVALID_HANDLE, guest.call(CudaOpcodes.hwsIpcShareEvent, plain).status());
            long opened = guest.newId(HandleKind.EVENT);
            assertEquals(0, openEvent(rig, opened, descriptor, 0).status());
            assertEquals(CUresult.CUDA_ERROR_MAP_FAILED,
                openEvent(rig, guest.newId(HandleKind.EVENT), descriptor, 8).status(), "memory is not an event");
            assertEquals(CUresult.CUDA_ERROR_MAP_FAILED,
                openEvent(rig, guest.newId(HandleKind.EVENT), -1, 0).status(), "without a page");
            assertEquals(before + 2, rig.gpu().openPages());
            guest.send(CudaOpcodes.cuEventDestroy_v2, 0, opened);
            guest.send(CudaOpcodes.cuEventDestroy_v2, 0, event);
            awaitClosedPages(rig, before);
        } finally {
            Descriptors.close(descriptor);
        }
    }

    @Test
    void shouldWaitForRecordsOfOtherSessions() throws IOException {
        int descriptor = EventPage.create();
        try (EventPage page = EventPage.map(descriptor); Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            int before = rig.gpu().openPages();
            long opened = guest.newId(HandleKind.EVENT);
            assertEquals(0, openEvent(rig, opened, descriptor, 0).status());
            assertEquals(0, query(guest, opened), "not recorded yet");
            int theirs = page.claim(1000); // another session's record, which its stream has not reached
            assertEquals(CUresult.CUDA_ERROR_NOT_READY, query(guest, opened));
            long stream = guest.createStream();
            waitFor(guest, stream, opened);
            long done = guest.send(CudaOpcodes.cuStreamSynchronize, Guest.REPLY, stream);
            long reached = guest.as(2).send(CudaOpcodes.cuEventSynchronize, Guest.REPLY, opened);
            guest.as(1).send(Guest.MEM_FREE, 0, guest.allocate(64)); // postponed, and blocks nothing
            assertEquals(CUresult.CUDA_ERROR_NOT_READY, guest.call(CudaOpcodes.cuStreamQuery, stream).status());
            assertEquals(0, guest.synchronize(0));
            page.endRecords(1000); // the broker does this when the other worker has died
            Set<Long> ended = new HashSet<>(); // in any order
            for (int i = 0; i < 2; i++) {
                Guest.Received reply = guest.next();
                assertEquals(0, reply.status());
                ended.add(reply.fields().sequence());
            }
            assertEquals(Set.of(done, reached), ended);
            assertTrue(page.isDone(theirs));
            assertEquals(0, query(guest, opened));
            guest.send(CudaOpcodes.cuEventDestroy_v2, 0, opened);
            awaitClosedPages(rig, before);
            assertEquals("release", rig.expect("release").path("type").asText());
        } finally {
            Descriptors.close(descriptor);
        }
    }

    /** The driver would block the session's thread, which alone can answer the guest. */
    @Test
    void shouldHoldWaitsThatTheDriversQueueDoesNotTake() throws IOException {
        int descriptor = EventPage.create();
        try (EventPage page = EventPage.map(descriptor); Rig rig = Rig.withGuest(Carrier.TCP)) {
            rig.gpu().blockLikeNvidia(1024);
            Guest guest = rig.guest();
            long opened = guest.newId(HandleKind.EVENT);
            assertEquals(0, openEvent(rig, opened, descriptor, 0).status());
            page.claim(1000); // another session's record, which its stream has not reached
            long stream = guest.createStream();
            for (int i = 0; i < 600; i++) {
                waitFor(guest, stream, opened);
            }
            assertEquals(CUresult.CUDA_ERROR_NOT_READY, guest.call(CudaOpcodes.cuStreamQuery, stream).status());
            page.endRecords(1000);
            assertEquals(0, guest.synchronize(stream));
            rig.leave();
        } finally {
            Descriptors.close(descriptor);
        }
    }

    @Test
    void shouldShowItsRecordsToOtherSessions() throws IOException {
        int descriptor = EventPage.create();
        try (EventPage page = EventPage.map(descriptor); Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            int before = rig.gpu().openPages();
            long hold = guest.function(guest.loadImage("hold"), "hold");
            long event = interprocessEvent(guest);
            long stream = guest.createStream();
            guest.launch(hold, stream, new byte[16]);
            record(guest, event, stream); // before others know the event
            shareEvent(rig, event, descriptor);
            int early = page.latest();
            assertFalse(page.isDone(early));
            long other = guest.createStream();
            record(guest, event, other);
            assertEquals(0, guest.synchronize(other));
            assertEquals(early + 1, page.latest());
            assertTrue(page.isDone(page.latest()));
            assertEquals(0, query(guest, event), "the latest record counts");
            for (int i = 0; i < 2 * EventPage.SLOTS; i++) { // more than there are slots
                record(guest, event, stream);
            }
            assertEquals(CUresult.CUDA_ERROR_NOT_READY, query(guest, event));
            assertFalse(page.isDone(early));
            rig.gpu().release();
            assertEquals(0, guest.synchronize(stream));
            assertEquals(0, query(guest, event));
            assertTrue(page.isDone(page.latest()));
            assertEquals(early + 1 + 2 * EventPage.SLOTS, page.latest());
            guest.send(CudaOpcodes.cuEventDestroy_v2, 0, event);
            awaitClosedPages(rig, before);
            assertEquals("unshare", rig.expect("unshare").path("type").asText());
        } finally {
            Descriptors.close(descriptor);
        }
    }

    @Test
    void shouldEndASessionThatSharesAnEventItNeverMade() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            rig.guest().send(CudaOpcodes.hwsIpcShareEvent, Guest.REPLY, rig.guest().newId(HandleKind.EVENT));
            String reason = rig.guest().reasonOfLoss();
            assertTrue(reason.contains("a handle must have been created with its kind"), reason);
        }
    }

    @Test
    void shouldEndSessionThatClosesUnopenedMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            rig.guest().send(CudaOpcodes.hwsIpcClose, Guest.REPLY, rig.guest().newId(HandleKind.IPC_MEMORY));
            String reason = rig.guest().reasonOfLoss();
            assertTrue(reason.contains("a handle must have been created with its kind"), reason);
        }
    }

    /** Maps a slab of the arena and returns its address. */
    private static long slab(Guest guest) throws IOException {
        long address = guest.call(CudaOpcodes.hwsDeviceInfo, out -> {
            out.fixed(8);
            out.i32(0, 0);
        }).i64(HwsDeviceInfo.ARENA_ADDRESS_OFFSET);
        assertEquals(0, guest.call(CudaOpcodes.hwsArenaMap, out -> {
            out.fixed(32);
            out.i64(8, address);
            out.i64(16, DeviceArena.PAGE_BYTES);
        }).status());
        return address;
    }

    private static void kept(Rig rig, JsonNode share) throws IOException {
        tell(rig, "{'type':'shared','name':'" + share.path("name").asText() + "','kept':true}");
    }

    /** The bytes of a name, as a range names its pieces. */
    private static String little(String name) {
        byte[] bytes = HexFormat.of().parseHex(name);
        for (int i = 0; i < bytes.length / 2; i++) {
            byte swapped = bytes[i];
            bytes[i] = bytes[bytes.length - 1 - i];
            bytes[bytes.length - 1 - i] = swapped;
        }
        return HexFormat.of().formatHex(bytes);
    }

    @Test
    void shouldShareARangeByTheNameOfItsPiece() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            long address = slab(rig.guest()) + UNIT;
            long request = rig.guest().send(CudaOpcodes.hwsIpcShare, Guest.REPLY, address, UNIT);
            JsonNode piece = rig.expect("share");
            Descriptors.close(rig.descriptors().receive());
            assertEquals(DeviceArena.PAGE_BYTES, piece.path("chargedBytes").asLong());
            kept(rig, piece);
            JsonNode range = rig.expect("share");
            assertEquals(0, range.path("chargedBytes").asLong(), "the piece is charged already");
            assertEquals("0000010000000000" + little(piece.path("name").asText()), range.path("handle").asText());
            kept(rig, range);
            Guest.Received reply = rig.guest().replyTo(request);
            assertEquals(range.path("name").asText(), name(reply));
            assertEquals(name(reply), name(rig.guest().call(CudaOpcodes.hwsIpcShare, address, UNIT)));
            assertEquals(CudaResult.INVALID_CONTEXT, rig.guest().call(CudaOpcodes.hwsIpcOpen,
                rig.guest().newId(HandleKind.IPC_MEMORY), reply.i64(0), reply.i64(8)).status(), "memory of its own");
        }
    }

    private static void foundPiece(Rig rig, String name) throws IOException {
        assertEquals(name, rig.expect("find").path("name").asText());
        int descriptor = Descriptors.memory("piece", UNIT);
        rig.broker().write(("{'type':'found','name':'" + name + "','handle':'00','column':0,'bytes':" + UNIT + "}")
            .replace('\'', '"').getBytes(StandardCharsets.UTF_8), descriptor);
        Descriptors.close(descriptor);
    }

    @Test
    void shouldMapThePiecesOfARangeOnceForAllRangesInThem() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long id = guest.newId(HandleKind.IPC_MEMORY);
            long request = ask(guest, id);
            found(rig, OFFSET_64 + little(FIRST) + little(SECOND), UNIT);
            expectRelease(rig);
            foundPiece(rig, FIRST);
            foundPiece(rig, SECOND);
            Guest.Received opened = guest.replyTo(request);
            assertEquals(0, opened.status());
            assertEquals(UNIT, opened.i64(8));
            long second = guest.newId(HandleKind.IPC_MEMORY);
            long other = ask(guest, second);
            found(rig, "00".repeat(8) + little(FIRST) + little(SECOND), 64);
            Guest.Received beside = guest.replyTo(other);
            assertEquals(opened.i64(0) - 64, beside.i64(0));
            assertEquals(0, guest.call(CudaOpcodes.hwsIpcClose, id).status());
            assertEquals(2, rig.gpu().virtualMemory().live().size(), "the other range uses the pieces");
            assertEquals(0, guest.call(CudaOpcodes.hwsIpcClose, second).status());
            expectRelease(rig); // of the second range, after its look-up
            assertEquals(FIRST, rig.expect("release").path("name").asText());
            assertEquals(SECOND, rig.expect("release").path("name").asText());
            assertEquals(Set.of(), rig.gpu().virtualMemory().live());
        }
    }

    @Test
    void shouldRefuseRangesThatLie() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            for (String handle : List.of("00", "00".repeat(8), OFFSET_64 + "00".repeat(15),
                "ff".repeat(8) + little(FIRST), "00".repeat(8) + little(FIRST).repeat(121))) {
                long request = ask(guest, guest.newId(HandleKind.IPC_MEMORY));
                found(rig, handle, 64);
                assertEquals(CudaResult.INVALID_VALUE, guest.replyTo(request).status(), handle);
            }
            for (long bytes : new long[] {UNIT, Long.MAX_VALUE}) {
                long request = ask(guest, guest.newId(HandleKind.IPC_MEMORY));
                found(rig, OFFSET_64 + little(FIRST), bytes);
                foundPiece(rig, FIRST);
                assertEquals(CudaResult.INVALID_VALUE, guest.replyTo(request).status(), "beyond its piece");
            }
            long request = ask(guest, guest.newId(HandleKind.IPC_MEMORY));
            found(rig, OFFSET_64 + little(FIRST) + little(SECOND), 64);
            foundPiece(rig, FIRST);
            assertEquals(SECOND, rig.expect("find").path("name").asText());
            tell(rig, "{'type':'notfound','name':'" + SECOND + "'}");
            assertEquals(CudaResult.INVALID_VALUE, guest.replyTo(request).status());
            assertEquals(Set.of(), rig.gpu().virtualMemory().live());
        }
    }
}
