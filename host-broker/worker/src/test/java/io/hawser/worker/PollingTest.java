package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A device whose ends of work must be polled: the session thread polls, and is woken when it sleeps. */
@Timeout(300)
@ParameterizedClass
@EnumSource(Carrier.class)
class PollingTest {
    @Parameter
    private Carrier carrier;

    /** Makes a rig after a warm-up, whose session polls too. */
    private Rig rig() throws IOException {
        return Rig.withGuestAfterWarmUp(carrier);
    }

    @Test
    void shouldAnswerCallsThatWait() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long memory = guest.allocate(4096);
            for (int i = 0; i < 500; i++) {
                byte[] data = new byte[i + 1];
                Arrays.fill(data, (byte) i);
                guest.write(memory, 0, data);
                assertArrayEquals(data, guest.read(memory, data.length, 0));
                assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
                assertEquals(0, guest.synchronize(0));
            }
            if (carrier == Carrier.SHM) {
                assertTrue(rig.gpu().endsFoundByPolling() > 0);
            }
            guest.send(Guest.MEM_FREE, 0, memory);
            rig.leave();
        }
    }

    @Test
    void shouldAnswerAfterLongWorkThroughWhichTheThreadSleeps() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long hold = guest.function(guest.loadImage("hold fill"), "hold");
            guest.launch(hold, 0, new byte[0]);
            long waits = guest.send(Guest.CTX_SYNCHRONIZE, Guest.REPLY);
            long free = guest.as(2).allocate(64); // the session serves another thread meanwhile
            guest.send(Guest.MEM_FREE, 0, free);
            LockSupport.parkNanos(200_000_000); // longer than any spin, so that the session thread must be woken
            rig.gpu().release();
            assertEquals(0, guest.as(1).replyTo(waits).status());
            rig.leave();
        }
    }

    @Test
    void shouldReturnCreditOfWorkThatNobodyWaitsFor() throws IOException {
        try (Rig rig = rig()) {
            Guest guest = rig.guest();
            long memory = guest.allocate(1 << 20);
            byte[] data = new byte[1 << 20];
            long sent = 0;
            for (int i = 0; i < 200; i++) {
                guest.write(memory, 0, data);
                sent += data.length;
                while (sent - guest.releasedBytes() > 16 << 20) {
                    guest.any(); // blocks forever if no credit arrives
                }
            }
            assertEquals(0, guest.synchronize(0));
            guest.send(Guest.MEM_FREE, 0, memory);
            rig.leave();
        }
    }
}
