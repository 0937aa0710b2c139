package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.Gates;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Copies from the copy area, whose bytes the guest sends when a stream reaches them. */
@Timeout(300)
@ParameterizedClass
@EnumSource(Carrier.class)
class CopyAreaTest {
    private static final int CALLBACK_ID = 4;

    @Parameter
    private Carrier carrier;

    private static void write(Guest guest, long offset, byte[] data) throws IOException {
        guest.send(CudaOpcodes.hwsCopyAreaWrite, 0, out -> {
            out.fixed(24);
            out.i64(0, offset);
            out.i64(8, data.length);
            out.buffer(16, MemorySegment.ofArray(data));
        });
    }

    private static void copy(Guest guest, long memory, long offset, long bytes, long stream) throws IOException {
        guest.send(CudaOpcodes.hwsCopyHtoDShared, Guest.CREDITED, memory, offset, bytes, stream,
            RecordLayout.COPY_AREA_CHUNK);
    }

    private static void leave(Rig rig) throws IOException {
        rig.guest().close();
        rig.expect("ended");
        assertTrue(rig.join());
        assertEquals("", rig.gpu().leftAtClose());
    }

    @Test
    void shouldReadAreaWhenStreamReachesCopy() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            byte[] data = Guest.random(300_000);
            long stream = guest.createStream();
            long memory = guest.allocate(data.length);
            guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, CALLBACK_ID);
            copy(guest, memory, 4096, data.length, stream);
            Received callback = guest.next();
            assertEquals(RecordLayout.CONTROL_CALLBACK, callback.opcode());
            write(guest, 4096, data);
            guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK_ID);
            assertArrayEquals(data, guest.read(memory, data.length, stream));
            leave(rig);
        }
    }

    /** Otherwise a guest that issues much work behind a copy could never send the copy's bytes. */
    @Test
    void shouldServeAreaWriteWhileRecordsAreHeld() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            byte[] data = Guest.random(1000);
            long stream = guest.createStream();
            long memory = guest.allocate(2000);
            guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, CALLBACK_ID);
            copy(guest, memory, 0, data.length, stream);
            for (int i = 0; i < 2 * Gates.MAX_BEHIND; i++) {
                guest.write(memory + data.length, stream, data);
            }
            assertEquals(RecordLayout.CONTROL_CALLBACK, guest.next().opcode());
            write(guest, 0, data);
            guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, CALLBACK_ID);
            assertArrayEquals(data, guest.read(memory, data.length, stream));
            leave(rig);
        }
    }

    @Test
    void shouldKeepBytesOfArea() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            Random random = new Random(15);
            byte[] model = new byte[1 << 20];
            long base = (long) RecordLayout.COPY_AREA_BYTES - model.length; // the area's last bytes
            long memory = guest.allocate(model.length);
            write(guest, base, model);
            for (int i = 0; i < 300; i++) {
                int from = random.nextInt(model.length);
                int bytes = random.nextInt(Math.min(20_000, model.length - from) + 1);
                if (random.nextBoolean()) {
                    byte[] data = Guest.random(bytes);
                    System.arraycopy(data, 0, model, from, bytes);
                    write(guest, base + from, data);
                } else if (bytes > 0) {
                    copy(guest, memory, base + from, bytes, 0);
                    assertArrayEquals(Arrays.copyOfRange(model, from, from + bytes), guest.read(memory, bytes, 0));
                }
            }
            leave(rig);
        }
    }

    @Test
    void shouldRefuseBytesOutsideArea() throws IOException {
        long end = RecordLayout.COPY_AREA_BYTES;
        long[][] cases = {{end, 1}, {end - 7, 8}, {-1, 8}, {-8, 8}, {Long.MIN_VALUE, 8}, {Long.MAX_VALUE, 8},
            {0, end + 1}, {1, end}};
        for (long[] each : cases) {
            String where = "must lie in it: areaOffset=" + Long.toUnsignedString(each[0]) + " bytes=" + each[1];
            HostileLaunchTest.refuse(where, (rig, guest) -> {
                // The allocation is large enough, so that only the area's check can reject the copy.
                copy(guest, guest.allocate(end + 8), each[0], each[1], 0);
            });
            if (each[1] <= RecordLayout.MAX_BULK_BYTES) {
                HostileLaunchTest.refuse(where, (rig, guest) -> write(guest, each[0], new byte[(int) each[1]]));
            }
        }
    }

    @Test
    void shouldEndSessionThatWaitsForBytes() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long stream = guest.createStream();
            long memory = guest.allocate(1 << 20);
            guest.send(Guest.HOST_FUNCTION, Guest.CREDITED, stream, CALLBACK_ID);
            copy(guest, memory, 0, 1 << 20, stream);
            assertEquals(RecordLayout.CONTROL_CALLBACK, guest.next().opcode());
            leave(rig);
        }
    }
}
