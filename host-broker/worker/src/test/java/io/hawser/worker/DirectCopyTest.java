package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.rdma.RdmaEnd;
import io.hawser.shm.rdma.RdmaEnd.Registration;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Copies between the device and registered memory of the guest, which adapters carry without records. */
@Timeout(300)
class DirectCopyTest {
    private static final int CALLBACK_ID = 4;
    private static final int BYTES = 300_000;
    private static final long AREA_OFFSET = 4096;
    private static final long AREA_BYTES = 4 << 20;

    private final Arena arena = Arena.ofAuto();

    private static Received read(Guest guest, long device, long bytes, Registration target) throws IOException {
        return guest.call(CudaOpcodes.hwsCopyDtoHDirect, device, bytes, 0, target.address(), target.key());
    }

    private static byte[] bytes(MemorySegment memory) {
        return memory.toArray(ValueLayout.JAVA_BYTE);
    }

    private static void fill(Guest guest, long device, byte[] data) throws IOException {
        int piece = RecordLayout.MAX_BULK_BYTES;
        for (int at = 0; at < data.length; at += piece) {
            byte[] part = Arrays.copyOfRange(data, at, Math.min(at + piece, data.length));
            guest.write(device + at, 0, part);
        }
    }

    /** The longest one has more pieces than buffers, so that its stream waits for the adapter. */
    @ParameterizedTest
    @ValueSource(ints = {1, 4096, BYTES, (1 << 20) + 8, 40 << 20})
    void shouldWriteTheGuestsMemoryBeforeTheReply(int length) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            Guest guest = rig.guest();
            byte[] data = Guest.random(length);
            MemorySegment memory = arena.allocate(length);
            Registration target = rig.mirror().end().register(memory, RdmaEnd.PEER_WRITES);
            long device = guest.allocate(length);
            fill(guest, device, data);
            for (int i = 0; i < 3; i++) {
                memory.fill((byte) 0);
                assertEquals(0, read(guest, device, length, target).status());
                assertArrayEquals(data, bytes(memory));
            }
            rig.mirror().end().unregister(target, 0);
            rig.leave();
        }
    }

    @Test
    void shouldReportFailureOfCopy() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            MemorySegment memory = arena.allocate(BYTES);
            Registration target = rig.mirror().end().register(memory, RdmaEnd.PEER_WRITES);
            assertTrue(read(rig.guest(), 8, BYTES, target).status() != 0);
            assertArrayEquals(new byte[BYTES], bytes(memory));
            rig.leave();
        }
    }

    /** The guest loses only its own session. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void shouldEndSessionOfGuestWhoseMemoryCannotBeWritten(int shift) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            MemorySegment memory = arena.allocate(BYTES);
            Registration target = rig.mirror().end().register(memory, RdmaEnd.PEER_WRITES);
            long device = rig.guest().allocate(BYTES);
            int key = target.key() + 1 - shift;
            rig.guest().send(CudaOpcodes.hwsCopyDtoHDirect, Guest.REPLY, device, BYTES, 0, target.address() + shift,
                key);
            String reason = rig.expect("ended").path("reason").asText();
            assertTrue(reason.contains("the RDMA connection is lost"), reason);
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldCopyFromTheAreaThatTheGuestHasWritten() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            Guest guest = rig.guest();
            byte[] data = Guest.random(BYTES);
            MemorySegment memory = arena.allocate(BYTES);
            RdmaEnd end = rig.mirror().end();
            Registration source = end.register(memory, RdmaEnd.PEER_READS);
            Received area = guest.call(CudaOpcodes.hwsCopyAreaOpen);
            assertEquals(0, area.status());
            long stream = guest.createStream();
            long device = guest.allocate(BYTES);
            guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, CALLBACK_ID);
            guest.send(CudaOpcodes.hwsCopyHtoDShared, Guest.CREDITED, device, 4096, BYTES, stream,
                RecordLayout.COPY_AREA_CHUNK);
            assertEquals(RecordLayout.CONTROL_CALLBACK, guest.next().opcode());
            memory.copyFrom(MemorySegment.ofArray(data));
            assertTrue(end.write(source, 0, BYTES, area.i64(0) + 4096, area.i32(8)) > 0);
            guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK_ID);
            assertArrayEquals(data, guest.read(device, BYTES, stream));
            rig.leave();
        }
    }

    private static void write(Guest guest, long device, long bytes, long stream, Registration source)
        throws IOException {
        guest.send(CudaOpcodes.hwsCopyHtoDDirect, Guest.REPLY, device, bytes, stream, source.address(), AREA_OFFSET,
            AREA_BYTES, source.key());
    }

    /** The bytes are those that the memory has when the stream reaches the copy. The longest uses each slot often. */
    @ParameterizedTest
    @ValueSource(ints = {1, 4096, BYTES, (1 << 20) + 8, 16 << 20})
    void shouldReadTheGuestsMemoryInStreamOrder(int length) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            Guest guest = rig.guest();
            MemorySegment memory = arena.allocate(length);
            Registration source = rig.mirror().end().register(memory, RdmaEnd.PEER_READS);
            long stream = guest.createStream();
            long device = guest.allocate(length);
            long second = guest.allocate(length);
            for (int i = 0; i < 3; i++) {
                byte[] data = Guest.random(length);
                memory.fill((byte) 0);
                guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, CALLBACK_ID);
                write(guest, device, length, stream, source);
                write(guest, second, length, stream, source);
                assertEquals(RecordLayout.CONTROL_CALLBACK, guest.next().opcode());
                memory.copyFrom(MemorySegment.ofArray(data));
                guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK_ID);
                for (int reply = 0; reply < 2; reply++) {
                    assertEquals(0, guest.next().status());
                }
                memory.fill((byte) 1); // after the replies nobody reads it any more
                assertArrayEquals(data, guest.read(device, length, stream));
                assertArrayEquals(data, guest.read(second, length, stream));
            }
            rig.leave();
        }
    }

    /** The stream never goes on, and the session ends nevertheless. */
    @Test
    void shouldEndWhileStreamWaitsForTheGuestsMemory() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            Guest guest = rig.guest();
            Registration source = rig.mirror().end().register(arena.allocate(BYTES), RdmaEnd.PEER_READS);
            long stream = guest.createStream();
            long device = guest.allocate(BYTES);
            guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, CALLBACK_ID);
            write(guest, device, BYTES, stream, source);
            assertEquals(RecordLayout.CONTROL_CALLBACK, guest.next().opcode());
            guest.kill();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void shouldEndSessionOfGuestWhoseMemoryCannotBeRead(int shift) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            Registration source = rig.mirror().end().register(arena.allocate(BYTES), RdmaEnd.PEER_READS);
            long device = rig.guest().allocate(BYTES);
            rig.guest().send(CudaOpcodes.hwsCopyHtoDDirect, Guest.REPLY, device, BYTES, 0, source.address() + shift,
                AREA_OFFSET, AREA_BYTES, source.key() + 1 - shift);
            String reason = rig.expect("ended").path("reason").asText();
            assertTrue(reason.contains("the RDMA connection is lost"), reason);
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    /** The bounds of the buffer are the guest's numbers; the last one would make too many pieces. */
    @ParameterizedTest
    @CsvSource({"-1, 4096", "0, -1", "4096, " + RecordLayout.COPY_AREA_BYTES, "0, 0", "0, 3", "0, 16384"})
    void shouldEndSessionOfGuestWithoutSoundBuffer(long offset, long bytes) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            Registration source = rig.mirror().end().register(arena.allocate(BYTES), RdmaEnd.PEER_READS);
            long device = rig.guest().allocate(BYTES);
            rig.guest().send(CudaOpcodes.hwsCopyHtoDDirect, Guest.REPLY, device, BYTES, 0, source.address(), offset,
                bytes, source.key());
            String reason = rig.expect("ended").path("reason").asText();
            assertTrue(reason.contains("must lie in it") || reason.contains("must be long enough"), reason);
        }
    }

    /** A key of the worker admits to nothing but the area. */
    @Test
    void shouldEndSessionOfGuestThatWritesBesideTheArea() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.RDMA)) {
            RdmaEnd end = rig.mirror().end();
            Registration source = end.register(arena.allocate(BYTES), 0);
            Received area = rig.guest().call(CudaOpcodes.hwsCopyAreaOpen);
            end.write(source, 0, 8, area.i64(0) + RecordLayout.COPY_AREA_BYTES - 4, area.i32(8));
            while (end.fault() == null) {
                end.done();
            }
            rig.guest().kill();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @ParameterizedTest
    @EnumSource(value = Carrier.class, names = "RDMA", mode = EnumSource.Mode.EXCLUDE)
    void shouldRefuseSuchCopiesOverAnotherCarrier(Carrier carrier) throws IOException {
        Map<Integer, long[]> calls = Map.of(CudaOpcodes.hwsCopyAreaOpen, new long[0], //
            CudaOpcodes.hwsCopyDtoHDirect, new long[] {BYTES, 0, 4096, 1},
            CudaOpcodes.hwsCopyHtoDDirect, new long[] {BYTES, 0, 4096, AREA_OFFSET, AREA_BYTES, 1});
        for (Map.Entry<Integer, long[]> call : calls.entrySet()) {
            try (Rig rig = Rig.withGuest(carrier)) {
                long[] more = call.getValue();
                long[] fields = LongStream.concat(
                    more.length == 0 ? LongStream.empty() : LongStream.of(rig.guest().allocate(BYTES)),
                    LongStream.of(more)).toArray();
                int opcode = call.getKey();
                rig.guest().send(opcode, Guest.REPLY, fields);
                String reason = rig.expect("ended").path("reason").asText();
                assertTrue(reason.contains("must go by RDMA"), reason);
            }
        }
    }
}
