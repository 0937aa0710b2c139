package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Results of a correct guest's calls, over real sockets from a complete worker. */
@Timeout(300)
@ParameterizedClass
@EnumSource(Carrier.class)
class SessionTest {
    @Parameter
    private Carrier carrier;

    private static byte[] fillParams(long pointer, int words, int value) {
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(pointer).putInt(words).putInt(value)
            .array();
    }

    /** Ends the session like a guest that leaves, and checks that no resource remains. */
    private static JsonNode leave(Rig rig) throws IOException {
        rig.guest().close();
        JsonNode ended = rig.expect("ended");
        assertTrue(rig.join());
        assertEquals("", rig.gpu().leftAtClose());
        return ended;
    }

    @Test
    void shouldWelcomeGuestWithLimitsOfSession() throws IOException {
        try (Rig rig = new Rig(carrier)) {
            rig.assign(0);
            Received welcome = rig.guest().next();
            assertEquals(RecordLayout.CONTROL_WELCOME, welcome.opcode());
            assertEquals(1, welcome.i32(RecordLayout.WELCOME_PROTOCOL_VERSION_OFFSET));
            assertEquals(1, welcome.i32(RecordLayout.WELCOME_DEVICE_COUNT_OFFSET));
            assertEquals(7, welcome.i64(RecordLayout.WELCOME_SESSION_ID_OFFSET));
            assertEquals(32 << 20, welcome.i64(RecordLayout.WELCOME_CREDIT_WINDOW_BYTES_OFFSET));
            assertEquals(RecordLayout.MAX_RECORD_BYTES, welcome.i32(RecordLayout.WELCOME_MAX_RECORD_BYTES_OFFSET));
            JsonNode ended = leave(rig);
            assertFalse(ended.path("error").asBoolean());
            assertEquals(0, rig.lastStats().path("refusedRecords").asLong());
        }
    }

    @Test
    void shouldCopyBothWaysInEverySizeClass() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            for (int bytes : new int[] {1, 7, 64, 4096, 16384, 16385, 70_001, 1 << 20}) {
                long memory = guest.allocate(bytes);
                byte[] data = Guest.random(bytes);
                guest.write(memory, 0, data);
                assertArrayEquals(data, guest.read(memory, bytes, 0), () -> "bytes=" + bytes);
                guest.send(Guest.MEM_FREE, 0, memory);
            }
            leave(rig);
        }
    }

    @Test
    void shouldSendCopyThatIsLargerThanAllStagingMemory() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            int bytes = 100 << 20;
            long memory = guest.allocate(bytes);
            byte[] piece = Guest.random(1 << 20);
            for (int at = 0; at < bytes; at += piece.length) {
                piece[0] = (byte) (at >> 20);
                guest.write(memory + at, 0, piece);
                if (at % (8 << 20) == 0) {
                    guest.synchronize(0); // reads CREDIT records too
                }
            }
            byte[] all = guest.read(memory, bytes, 0);
            for (int at = 0; at < bytes; at += piece.length) {
                piece[0] = (byte) (at >> 20);
                assertArrayEquals(piece, java.util.Arrays.copyOfRange(all, at, at + piece.length), "at=" + at);
            }
            leave(rig);
        }
    }

    @Test
    void shouldCopyBoxesByRows() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(64 * 8 * 4);
            byte[] box = Guest.random(10 * 3 * 2);
            guest.send(Guest.WRITE_BOX, Guest.CREDITED, out -> {
                out.fixed(88);
                long[] fields = {memory, 64, 8, 5, 2, 1, 10, 3, 2, 0};
                for (int i = 0; i < fields.length; i++) {
                    out.i64(8L * i, fields[i]);
                }
                out.buffer(80, java.lang.foreign.MemorySegment.ofArray(box));
            });
            byte[] whole = guest.read(memory, 64 * 8 * 4, 0);
            for (int i = 0; i < box.length; i++) {
                int slice = 1 + i / 30;
                int row = 2 + i / 10 % 3;
                assertEquals(box[i], whole[(slice * 8 + row) * 64 + 5 + i % 10], "i=" + i);
            }
            long request = guest.send(Guest.READ_BOX, Guest.REPLY, memory, 64, 8, 5, 2, 1, 10, 3, 2, 0);
            assertArrayEquals(box, guest.collect(request, box.length));
            leave(rig);
        }
    }

    @Test
    void shouldRunKernelsInStreamOrder() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long fill = guest.function(guest.loadImage("fill hold"), "fill");
            long stream = guest.createStream();
            long memory = guest.allocate(64);
            guest.write(memory, stream, new byte[64]);
            guest.launch(fill, stream, fillParams(memory, 4, 0x01010101));
            byte[] data = guest.read(memory, 64, stream);
            assertEquals(1, data[15]);
            assertEquals(0, data[16]);
            leave(rig);
            assertEquals(1, rig.lastStats().path("kernels").asLong());
        }
    }

    @Test
    void shouldAnswerOthersWhileOneThreadWaits() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long hold = guest.function(guest.loadImage("hold"), "hold");
            long stream = guest.createStream();
            guest.launch(hold, stream, new byte[0]);
            long waiting = guest.as(1).send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, stream);
            long other = guest.as(2).createStream();
            assertEquals(0, guest.synchronize(other));
            long memory = guest.allocate(16);
            assertEquals(16, guest.read(memory, 16, other).length);
            rig.gpu().release();
            assertEquals(0, guest.replyTo(waiting).status());
            leave(rig);
        }
    }

    @Test
    void shouldRunHostFunctionsInStreamOrder() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long stream = guest.createStream();
            guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, 42);
            long waiting = guest.send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, stream);
            Received callback = guest.next();
            assertEquals(RecordLayout.CONTROL_CALLBACK, callback.opcode());
            assertEquals(42, callback.i64(RecordLayout.CALLBACK_CALLBACK_ID_OFFSET));
            assertEquals(0, guest.synchronize(0)); // another stream is not blocked
            guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, 42);
            assertEquals(0, guest.replyTo(waiting).status());
            leave(rig);
        }
    }

    @Test
    void shouldForwardDeviceOutputBeforeReply() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            guest.launch(guest.function(guest.loadImage("print"), "print"), 0, new byte[0]);
            assertEquals(0, guest.synchronize(0));
            assertEquals("printed\n", guest.printed());
            leave(rig);
        }
    }

    @Test
    void shouldKeepErrorOfLostContext() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            guest.launch(guest.function(guest.loadImage("fault"), "fault"), 0, new byte[0]);
            assertEquals(700, guest.synchronize(0));
            assertEquals(700, guest.synchronize(0));
            assertEquals(700, guest.call(Guest.CTX_SYNCHRONIZE).status());
            JsonNode ended = leave(rig);
            assertFalse(ended.path("error").asBoolean()); // a fault of a kernel is the program's, not the worker's
        }
    }

    @Test
    void shouldDeliverDeferredErrorOnce() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            guest.send(Guest.MEM_FREE, 0, 0xdead00L); // not an allocation of this session
            assertEquals(1, guest.synchronize(0));
            assertEquals(0, guest.synchronize(0));
            leave(rig);
        }
    }

    @Test
    void shouldRefuseCopyOutsideOwnAllocations() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(64);
            guest.write(memory + 32, 0, new byte[33]);
            assertEquals(1, guest.synchronize(0));
            assertEquals(1, guest.call(Guest.COPY_DTOH, memory - 1, 1, 0).status());
            assertEquals(1, guest.call(Guest.COPY_DTOH, memory, -1, 0).status());
            guest.send(Guest.MEM_FREE, 0, memory);
            assertEquals(1, guest.call(Guest.COPY_DTOH, memory, 1, 0).status());
            leave(rig);
        }
    }

    @Test
    void shouldReachVariableOfModuleUntilUnload() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long module = guest.loadImage("fill");
            Received variable = guest.call(Guest.GLOBAL_GET, out -> {
                out.fixed(16);
                out.i64(0, module);
                out.string(8, "variable");
            });
            assertEquals(256, variable.i64(8));
            guest.write(variable.i64(0), 0, Guest.random(256));
            assertArrayEquals(Guest.random(256), guest.read(variable.i64(0), 256, 0));
            guest.send(Guest.IMAGE_UNLOAD, 0, module);
            assertEquals(1, guest.call(Guest.COPY_DTOH, variable.i64(0), 1, 0).status());
            leave(rig);
        }
    }

    @Test
    void shouldKeepToQuota() throws IOException {
        try (Rig rig = Rig.withGuest(carrier, 1 << 20)) {
            Guest guest = rig.guest();
            assertEquals(1 << 20, guest.call(Guest.DEVICE_INFO, 0).i64(272));
            long memory = guest.allocate(1 << 19);
            assertEquals(2, guest.call(Guest.MEM_ALLOC, (1 << 19) + 1).status());
            Received info = guest.call(Guest.MEM_GET_INFO);
            assertEquals(1 << 19, info.i64(0));
            assertEquals(1 << 20, info.i64(8));
            guest.send(Guest.MEM_FREE, 0, memory);
            guest.allocate(1 << 20);
            leave(rig);
        }
    }

    @Test
    void shouldWaitForMemoryThatIsBeingFreed() throws IOException {
        try (Rig rig = Rig.withGuest(carrier, 1 << 20)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(1 << 20);
            guest.launch(guest.function(guest.loadImage("hold"), "hold"), 0, new byte[0]);
            guest.send(Guest.MEM_FREE, 0, memory);
            long allocation = guest.send(Guest.MEM_ALLOC, Guest.REPLY, 1 << 20);
            assertEquals(0, guest.call(Guest.DEVICE_INFO, 0).status()); // answered while the kernel still runs
            rig.gpu().release();
            assertEquals(0, guest.replyTo(allocation).status());
            leave(rig);
        }
    }

    @Test
    void shouldFreeEverythingOfKilledGuest() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            guest.loadImage("fill");
            long stream = guest.createStream();
            long memory = guest.allocate(1 << 20);
            for (int i = 0; i < 20; i++) {
                guest.write(memory, stream, new byte[1 << 20]);
            }
            guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, 1);
            guest.send(Guest.COPY_DTOH, Guest.REPLY, memory, 1 << 20, stream);
            guest.send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, stream);
            guest.kill();
            assertFalse(rig.expect("ended").path("error").asBoolean());
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldServeGuestThatStopsReadingOnceItReads() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(8 << 20);
            byte[] data = Guest.random(1 << 20);
            guest.write(memory + (7 << 20), 0, data);
            int copies = 20; // 160 MiB: more than sockets and staging memory hold
            long[] requests = new long[copies];
            for (int i = 0; i < copies; i++) {
                requests[i] = guest.send(Guest.COPY_DTOH, Guest.REPLY, memory, 8 << 20, 0);
            }
            for (long request : requests) {
                byte[] all = guest.collect(request, 8 << 20);
                assertArrayEquals(data, java.util.Arrays.copyOfRange(all, 7 << 20, 8 << 20));
            }
            leave(rig);
        }
    }

    @Test
    void shouldReleaseCreditOfExecutedWork() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(1 << 20);
            long sent = 0;
            for (int i = 0; i < 200; i++) {
                while (sent + (1 << 20) + 64 - guest.releasedBytes() > 32 << 20) {
                    guest.any(); // only CREDIT records can arrive
                }
                guest.write(memory, 0, new byte[1 << 20]);
                sent += (1 << 20) + 64;
            }
            assertEquals(0, guest.synchronize(0));
            assertTrue(guest.releasedBytes() > 160 << 20, () -> "released=" + guest.releasedBytes());
            leave(rig);
        }
    }

    @Test
    void shouldEndWhenBrokerDemands() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            rig.broker().write("{\"type\":\"end\",\"reason\":\"maintenance\"}".getBytes());
            assertEquals("maintenance", rig.guest().reasonOfLoss());
            assertFalse(rig.expect("ended").path("error").asBoolean());
            assertEquals("", rig.gpu().leftAtClose().replace("not closed", ""));
        }
    }

    @Test
    void shouldReportDefectInBackendToGuest() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            guest.send(Guest.IMAGE_LOAD, Guest.REPLY, out -> Guest.image(out, guest.newId(
                io.hawser.cuda.generated.HandleKind.MODULE), 0, "image crash".getBytes()));
            assertTrue(guest.reasonOfLoss().contains("a defect in a backend"));
            assertTrue(rig.expect("ended").path("error").asBoolean());
        }
    }
}
