package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A session thread that a call of the driver blocks for ever. Over shared memory, the broker watches the guest. */
@Timeout(300)
class BlockedSessionTest {
    private static final int ENTRIES = 4;

    @Test
    void shouldEndWhenItsGuestHasGone() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long hold = guest.function(guest.loadImage("hold"), "hold");
            rig.gpu().blockLikeNvidia(ENTRIES);
            for (int i = 0; i <= ENTRIES; i++) { // the last call waits for the first kernel
                guest.launch(hold, 0, new byte[0]);
            }
            guest.kill();
            String reason = rig.expect("ended").path("reason").asText();
            assertTrue(reason.contains("while a call of the driver blocks its session"), reason);
            assertFalse(rig.join(), "the process must exit at once");
            rig.gpu().release();
        }
    }
}
