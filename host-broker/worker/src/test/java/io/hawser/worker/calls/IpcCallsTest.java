package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapMemorySharing;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class IpcCallsTest {
    private static final String HANDLE = "bc01000000000000" + "00".repeat(56);
    private static final String EVENT_HANDLE = "bce1000000000000" + "00".repeat(56);

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
        long request = rig.guest().send(CudaOpcodes.hwsIpcShare, Guest.REPLY, address);
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
            Guest.Received again = guest.call(CudaOpcodes.hwsIpcShare, one); // answered without the broker
            assertEquals(name(first), name(again));
            assertNotEquals(name(first), name(share(rig, two)));
            assertEquals(CudaResult.INVALID_VALUE, guest.call(CudaOpcodes.hwsIpcShare, one + 8).status());
            assertEquals(CudaResult.INVALID_VALUE, guest.call(CudaOpcodes.hwsIpcShare, 0x1234).status());
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
            long request = rig.guest().send(CudaOpcodes.hwsIpcShare, Guest.REPLY, address);
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
            long request = guest.send(CudaOpcodes.hwsIpcShare, Guest.REPLY, address);
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
                openEvent(rig, guest.newId(HandleKind.EVENT), HANDLE, 8).status(), "memory is no event");
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
            assertEquals(CudaResult.INVALID_VALUE, guest.call(CudaOpcodes.hwsIpcShare, address).status());
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

    private static Guest.Received openEvent(Rig rig, long id, String handle, long bytes) throws IOException {
        long request = rig.guest().send(CudaOpcodes.hwsIpcOpenEvent, Guest.REPLY, id, 5, 6);
        found(rig, handle, bytes);
        return rig.guest().replyTo(request);
    }

    @Test
    void shouldNameEventsOnceAndOpenThoseOfOthers() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long event = guest.newId(HandleKind.EVENT);
            guest.send(CudaOpcodes.cuEventCreate, 0, event, 6);
            long request = guest.send(CudaOpcodes.hwsIpcShareEvent, Guest.REPLY, event);
            JsonNode share = rig.expect("share");
            assertEquals(0, share.path("bytes").asLong());
            tell(rig, "{'type':'shared','name':'" + share.path("name").asText() + "','kept':true}");
            Guest.Received first = guest.replyTo(request);
            assertEquals(name(first), name(guest.call(CudaOpcodes.hwsIpcShareEvent, event)));
            assertEquals(CudaResult.INVALID_CONTEXT, guest.call(CudaOpcodes.hwsIpcOpenEvent,
                guest.newId(HandleKind.EVENT), first.i64(0), first.i64(8)).status(), "an event of its own");

            long opened = guest.newId(HandleKind.EVENT);
            assertEquals(0, openEvent(rig, opened, EVENT_HANDLE, 0).status());
            assertEquals(CUresult.CUDA_ERROR_MAP_FAILED,
                openEvent(rig, guest.newId(HandleKind.EVENT), EVENT_HANDLE, 8).status(), "memory is not an event");
            assertEquals(CUresult.CUDA_ERROR_MAP_FAILED,
                openEvent(rig, guest.newId(HandleKind.EVENT), HANDLE, 0).status(), "the driver does not know it");
            assertEquals(List.of("share event", "open event"), rig.gpu().memorySharing().calls());
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
}
