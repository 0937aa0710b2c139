package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.EventFd;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapVirtualMemory;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.SharedNames;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class VmmCallsTest {
    private static final long UNIT = HeapVirtualMemory.UNIT;

    private static long reserve(Guest guest, long bytes) throws IOException {
        return guest.call(CudaOpcodes.hwsMemReserve, bytes, 0, 0).i64(0);
    }

    private static Guest.Received create(Guest guest, long id, long bytes, int device) throws IOException {
        return guest.call(CudaOpcodes.hwsMemCreate, out -> {
            out.fixed(32);
            out.i64(0, id);
            out.i64(8, bytes);
            out.i32(16, device);
        });
    }

    private static long memory(Guest guest, long bytes) throws IOException {
        long id = guest.newId(HandleKind.MEM_ALLOCATION);
        assertEquals(0, create(guest, id, bytes, 0).status());
        return id;
    }

    private static int access(Guest guest, long address, long bytes, int device) throws IOException {
        return guest.call(CudaOpcodes.hwsMemSetAccess, out -> {
            out.fixed(24);
            out.i64(0, address);
            out.i64(8, bytes);
            out.i32(16, device);
            out.i32(20, 3);
        }).status();
    }

    private static int map(Guest guest, long address, long bytes, long offset, long id) throws IOException {
        return guest.call(CudaOpcodes.hwsMemMap, address, bytes, offset, id).status();
    }

    private static int unmap(Guest guest, long address, long bytes) throws IOException {
        return guest.call(CudaOpcodes.hwsMemUnmap, address, bytes).status();
    }

    private static long free(Guest guest) throws IOException {
        return guest.call(Guest.MEM_GET_INFO).i64(0);
    }

    @Test
    void shouldMapAndCountMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 16 * UNIT)) {
            Guest guest = rig.guest();
            long address = reserve(guest, 8 * UNIT);
            assertEquals(16 * UNIT, free(guest), "addresses cost nothing");
            long one = memory(guest, UNIT);
            long two = memory(guest, 4 * UNIT);
            assertEquals(11 * UNIT, free(guest));
            assertEquals(0, map(guest, address, UNIT, 0, one));
            assertEquals(0, map(guest, address + UNIT, 2 * UNIT, UNIT, two));
            assertEquals(11 * UNIT, free(guest), "mapping costs nothing more");
            assertEquals(0, access(guest, address, 3 * UNIT, 0));
            assertEquals(0, unmap(guest, address, 3 * UNIT));
            assertEquals(0, guest.call(CudaOpcodes.hwsMemRelease, one).status());
            assertEquals(0, guest.call(CudaOpcodes.hwsMemRelease, two).status());
            assertEquals(16 * UNIT, free(guest));
            assertEquals(0, guest.call(CudaOpcodes.hwsMemUnreserve, address, 8 * UNIT).status());
            assertEquals(List.of("reserve 524288 0 0", "create 65536 0 0 0", "create 262144 0 0 0", "map +0 65536 0 1",
                "map +65536 131072 65536 2", "setAccess +0 196608 0 3", "unmap +0 196608", "release 1", "release 2",
                "unreserve +0 524288"), rig.gpu().virtualMemory().calls());
            assertEquals(Set.of(), rig.gpu().virtualMemory().live());
        }
    }

    @Test
    void shouldKeepToTheQuota() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 4 * UNIT)) {
            Guest guest = rig.guest();
            long kept = memory(guest, 3 * UNIT);
            long id = guest.newId(HandleKind.MEM_ALLOCATION);
            assertEquals(CudaResult.OUT_OF_MEMORY, create(guest, id, 2 * UNIT, 0).status());
            assertEquals(CudaResult.OUT_OF_MEMORY, create(guest, id, Long.MIN_VALUE, 0).status());
            assertEquals(CudaResult.OUT_OF_MEMORY, guest.call(Guest.MEM_ALLOC, 2 * UNIT).status());
            assertEquals(CudaResult.INVALID_VALUE, create(guest, id, 0, 0).status());
            assertEquals(CudaResult.INVALID_DEVICE, create(guest, id, UNIT, 1).status());
            assertEquals(0, guest.call(CudaOpcodes.hwsMemRelease, kept).status());
            assertEquals(0, guest.call(Guest.MEM_ALLOC, 2 * UNIT).status());
        }
    }

    @Test
    void shouldRefuseWhatIsNotTheSessions() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long address = reserve(guest, 4 * UNIT);
            long id = memory(guest, 2 * UNIT);
            long allocated = guest.call(Guest.MEM_ALLOC, UNIT).i64(0);
            int before = rig.gpu().virtualMemory().calls().size();
            long[][] wrong = {{allocated, UNIT, 0}, {address - UNIT, UNIT, 0}, {address + 3 * UNIT, 2 * UNIT, 0},
                {address, UNIT, 2 * UNIT}, {address, 3 * UNIT, 0}, {address, -UNIT, 0}, {address, UNIT, -UNIT},
                {address, 0, 0}, {address, Long.MAX_VALUE, 0}, {-UNIT, 2 * UNIT, 0}, {0, UNIT, 0}};
            for (long[] range : wrong) {
                assertEquals(CudaResult.INVALID_VALUE, map(guest, range[0], range[1], range[2], id));
                assertEquals(CudaResult.INVALID_VALUE, unmap(guest, range[0], range[1]));
                assertEquals(CudaResult.INVALID_VALUE, access(guest, range[0], range[1], 0));
                assertEquals(CudaResult.INVALID_VALUE,
                    guest.call(CudaOpcodes.hwsMemUnreserve, range[0], range[1]).status());
            }
            assertEquals(before, rig.gpu().virtualMemory().calls().size(), "no call has reached the driver");
            assertEquals(0, map(guest, address + UNIT, 2 * UNIT, 0, id));
            assertEquals(CudaResult.INVALID_VALUE, map(guest, address + 2 * UNIT, UNIT, 0, id));
            assertEquals(CudaResult.INVALID_VALUE, map(guest, address, 2 * UNIT, 0, id));
            assertEquals(CudaResult.INVALID_VALUE, unmap(guest, address + UNIT, UNIT));
            assertEquals(CudaResult.INVALID_VALUE, unmap(guest, address, 3 * UNIT));
            // As long as the mapping that begins inside: a gap before that mapping, and its end beyond the range.
            assertEquals(CudaResult.INVALID_VALUE, unmap(guest, address, 2 * UNIT));
            assertEquals(CudaResult.INVALID_VALUE, access(guest, address, 2 * UNIT, 0));
            assertEquals(CudaResult.INVALID_VALUE, access(guest, address + UNIT, 3 * UNIT, 0));
            assertEquals(CudaResult.INVALID_DEVICE, access(guest, address + UNIT, 2 * UNIT, -1));
            assertEquals(CudaResult.INVALID_VALUE,
                guest.call(CudaOpcodes.hwsMemUnreserve, address, 4 * UNIT).status());
            assertEquals(0, unmap(guest, address + UNIT, 2 * UNIT));
            assertEquals(CudaResult.INVALID_VALUE, unmap(guest, address + UNIT, 2 * UNIT));
        }
    }

    @Test
    void shouldBoundReservations() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            assertEquals(CudaResult.OUT_OF_MEMORY,
                guest.call(CudaOpcodes.hwsMemReserve, (1L << 44) + UNIT, 0, 0).status());
            assertEquals(CudaResult.OUT_OF_MEMORY, guest.call(CudaOpcodes.hwsMemReserve, -UNIT, 0, 0).status());
            assertEquals(CudaResult.INVALID_VALUE, guest.call(CudaOpcodes.hwsMemReserve, 0, 0, 0).status());
            assertEquals(0, guest.call(CudaOpcodes.hwsMemReserve, 1L << 44, 0, 0).status());
            assertEquals(CudaResult.OUT_OF_MEMORY, guest.call(CudaOpcodes.hwsMemReserve, UNIT, 0, 0).status());
        }
    }

    @Test
    void shouldEndSessionThatReleasesMappedMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long address = reserve(guest, UNIT);
            long id = memory(guest, UNIT);
            assertEquals(0, map(guest, address, UNIT, 0, id));
            guest.send(CudaOpcodes.hwsMemRelease, Guest.REPLY, id);
            assertTrue(guest.reasonOfLoss().contains("after its last mapping"));
        }
    }

    @Test
    void shouldEndSessionThatNamesUnknownMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long address = reserve(guest, UNIT);
            guest.send(CudaOpcodes.hwsMemMap, Guest.REPLY, address, UNIT, 0, 12L << 40 | 99);
            assertTrue(guest.reasonOfLoss().contains("handle must have been created"));
        }
    }

    private static void tell(Rig rig, String json, int descriptor) throws IOException {
        rig.broker().write(json.replace('\'', '"').getBytes(StandardCharsets.UTF_8), descriptor);
    }

    private static String name(Guest.Received reply) {
        return HexFormat.of().toHexDigits(reply.i64(8)) + HexFormat.of().toHexDigits(reply.i64(0));
    }

    private static Guest.Received export(Rig rig, long id, boolean isKept) throws IOException {
        long request = rig.guest().send(CudaOpcodes.hwsMemExport, Guest.REPLY, id);
        JsonNode share = rig.expect("share");
        assertTrue(share.path("passed").asBoolean());
        int descriptor = rig.descriptors().receive();
        assertEquals(UNIT, Descriptors.fileBytes(descriptor), "the descriptor must be the memory's");
        Descriptors.close(descriptor);
        tell(rig, "{'type':'shared','name':'" + share.path("name").asText() + "','kept':" + isKept + "}", -1);
        return rig.guest().replyTo(request);
    }

    private static long askImport(Rig rig, long id) throws IOException {
        long request = rig.guest().send(CudaOpcodes.hwsMemImport, Guest.REPLY, id, 5, 6);
        assertEquals("00000000000000060000000000000005", rig.expect("find").path("name").asText());
        return request;
    }

    /** The reply to an import of memory for which the broker sends this descriptor, which is closed. */
    private static Guest.Received imported(Rig rig, long id, int descriptor, long bytes, int column)
        throws IOException {
        long request = askImport(rig, id);
        tell(rig, "{'type':'found','name':'00000000000000060000000000000005','handle':'00','column':" + column
            + ",'bytes':" + bytes + "}", descriptor);
        if (descriptor >= 0) {
            Descriptors.close(descriptor);
        }
        return rig.guest().replyTo(request);
    }

    @Test
    void shouldShareMemoryUnderOneNameUntilItIsReleased() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 16 * UNIT)) {
            Guest guest = rig.guest();
            long id = memory(guest, UNIT);
            assertEquals(CudaResult.OUT_OF_MEMORY, export(rig, id, false).status(), "the broker keeps no name");
            String name = name(export(rig, id, true));
            assertEquals(name, name(guest.call(CudaOpcodes.hwsMemExport, id)));
            long request = guest.send(CudaOpcodes.hwsMemRelease, Guest.REPLY, id);
            assertEquals(0, guest.replyTo(request).status());
            while (!name.equals(rig.expect("unshare").path("name").asText())) {
                Thread.onSpinWait(); // the name that the broker has not kept comes first
            }
            assertEquals(15 * UNIT, free(guest), "the session must pay until the broker has answered");
            tell(rig, "{'type':'unshared','name':'" + name + "'}", -1);
            while (free(guest) != 16 * UNIT) {
                Thread.onSpinWait(); // ends when the message has come
            }
            assertEquals(Set.of(), rig.gpu().virtualMemory().live());
        }
    }

    @Test
    void shouldOpenMemoryOfAnotherSessionThatCostsNothing() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 16 * UNIT)) {
            Guest guest = rig.guest();
            long id = guest.newId(HandleKind.MEM_ALLOCATION);
            Guest.Received reply = imported(rig, id, Descriptors.memory("other", UNIT), UNIT, 0);
            assertEquals(0, reply.status());
            assertEquals(UNIT, reply.i64(8));
            long address = reserve(guest, UNIT);
            assertEquals(0, map(guest, address, UNIT, 0, id));
            assertEquals(16 * UNIT, free(guest));
            assertEquals(CudaResult.INVALID_VALUE, guest.call(CudaOpcodes.hwsMemExport, id).status());
            assertEquals(0, unmap(guest, address, UNIT));
            assertEquals(0, guest.call(CudaOpcodes.hwsMemRelease, id).status());
            assertEquals("00000000000000060000000000000005", rig.expect("release").path("name").asText());
            assertEquals(Set.of(), rig.gpu().virtualMemory().live());
        }
    }

    @Test
    void shouldRefuseDescriptorsThatAreNoMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            int[] wrong = {Descriptors.memory("short", UNIT - 1), EventFd.create().fd(),
                Descriptors.memory("huge", 1L << 40), SharedNames.NO_DESCRIPTOR};
            for (int descriptor : wrong) {
                long id = rig.guest().newId(HandleKind.MEM_ALLOCATION);
                assertEquals(CudaResult.INVALID_VALUE, imported(rig, id, descriptor, UNIT, 0).status());
                rig.expect("release");
            }
            long id = rig.guest().newId(HandleKind.MEM_ALLOCATION);
            assertEquals(CudaResult.INVALID_VALUE, imported(rig, id, Descriptors.memory("other", UNIT), UNIT, 63)
                .status(), "memory of a GPU that the session does not have");
            assertEquals(CudaResult.INVALID_VALUE, imported(rig, id, Descriptors.memory("other", UNIT), 0, 0).status(),
                "an event has no memory");
            long request = askImport(rig, id);
            tell(rig, "{'type':'notfound','name':'00000000000000060000000000000005'}", -1);
            assertEquals(CudaResult.INVALID_VALUE, rig.guest().replyTo(request).status());
            assertEquals(Set.of(), rig.gpu().virtualMemory().live());
        }
    }

    @Test
    void shouldNotOpenMemoryOfItsOwn() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest.Received shared = export(rig, memory(rig.guest(), UNIT), true);
            long id = rig.guest().newId(HandleKind.MEM_ALLOCATION);
            assertEquals(CudaResult.INVALID_VALUE, rig.guest().call(CudaOpcodes.hwsMemImport, id, shared.i64(0),
                shared.i64(8)).status(), "it would stay after its release, and nobody would pay");
        }
    }
}
