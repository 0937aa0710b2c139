package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Small work without data costs credit too, because waiting work takes the worker's memory. */
@Timeout(300)
@ParameterizedClass
@EnumSource(Carrier.class)
class CreditTest {
    private static final long WINDOW_BYTES = 32 << 20;
    private static final int RECORD_BYTES = 64; // a header and four numbers
    private static final int BATCH = 4096;
    private static final int LARGE_BYTES = 1 << 20;

    @Parameter
    private Carrier carrier;

    @Test
    void shouldReleaseCreditOfSmallWork() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(256);
            long sent = 0;
            while (sent < WINDOW_BYTES + WINDOW_BYTES / 16) {
                while (sent + (long) BATCH * RECORD_BYTES - guest.releasedBytes() > WINDOW_BYTES) {
                    guest.any(); // only CREDIT records can arrive
                }
                guest.sendRaw(copies(guest, memory));
                sent += (long) BATCH * RECORD_BYTES;
            }
            assertEquals(0, guest.synchronize(0));
            assertTrue(guest.releasedBytes() >= WINDOW_BYTES / 2, () -> "released=" + guest.releasedBytes());
            guest.close();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    @Test
    void shouldReleaseCreditOfDestroyedStreams() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(LARGE_BYTES);
            byte[] data = new byte[LARGE_BYTES / 16];
            long sent = 0;
            for (int i = 0; sent < WINDOW_BYTES + WINDOW_BYTES / 16; i++) {
                while (sent + LARGE_BYTES - guest.releasedBytes() > WINDOW_BYTES) {
                    guest.any(); // only CREDIT records can arrive
                }
                long stream = guest.createStream();
                byte[] part = i % 2 == 0 ? data : new byte[64];
                guest.write(memory, stream, part);
                guest.send(CudaOpcodes.cuStreamDestroy_v2, 0, stream);
                sent += part.length + RECORD_BYTES;
            }
            assertEquals(0, guest.synchronize(0));
            guest.close();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose(), "the last streams waited for no marker");
        }
    }

    @Test
    void shouldRefuseMoreSmallWorkThanTheWindowHolds() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(LARGE_BYTES);
            guest.launch(guest.function(guest.loadImage("hold"), "hold"), 0, new byte[0]);
            try {
                // A few large records use most of the window; small work must use up the rest.
                long sent = 0;
                for (; sent < WINDOW_BYTES - 2 * LARGE_BYTES; sent += LARGE_BYTES) {
                    guest.write(memory, 0, new byte[LARGE_BYTES]);
                }
                for (; sent <= WINDOW_BYTES; sent += (long) BATCH * RECORD_BYTES) {
                    guest.sendRaw(copies(guest, memory));
                }
            } catch (IOException e) {
                assertTrue(e.getMessage() != null, "the session has ended while we were sending");
            }
            assertTrue(guest.reasonOfLoss().contains("keep to its credit"));
            rig.expect("ended");
            assertEquals(1, rig.lastStats().path("refusedRecords").asLong());
        }
    }

    @Test
    void shouldRefuseSmallWorkThatTakesNoCredit() throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(256);
            guest.send(CudaOpcodes.cuMemcpyDtoDAsync_v2, 0, memory, memory + 64, 64, 0);
            assertTrue(guest.reasonOfLoss().contains("credit flag must be"));
            rig.expect("ended");
        }
    }

    private static byte[] copies(Guest guest, long memory) {
        ByteArrayOutputStream records = new ByteArrayOutputStream(BATCH * RECORD_BYTES);
        for (int i = 0; i < BATCH; i++) {
            records.writeBytes(guest.encode(CudaOpcodes.cuMemcpyDtoDAsync_v2, Guest.CREDITED, out -> {
                out.fixed(32);
                out.i64(0, memory);
                out.i64(8, memory + 64);
                out.i64(16, 64);
                out.i64(24, 0);
            }));
        }
        assertEquals(BATCH * RECORD_BYTES, records.size());
        return records.toByteArray();
    }
}
