package io.hawser.broker.turns;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class TurnTicketTest {
    private static final int MOST = 20_000; // accepted rings a second
    private static final long SECOND_NS = 1_000_000_000;

    private TurnTicket ticket;

    @BeforeEach
    void make() throws IOException {
        ticket = new TurnTicket("one", 1, List.of("gpu"));
    }

    @AfterEach
    void close() {
        ticket.close();
    }

    @Test
    void shouldNotListenToABellThatRingsTooOftenUntilTheSecondIsOver() throws IOException {
        long now = 5 * SECOND_NS;
        for (int ring = 0; ring < MOST; ring++) {
            assertTrue(ticket.acceptRing(now));
            assertFalse(ticket.isMuted(now));
        }
        assertFalse(ticket.acceptRing(now));
        assertTrue(ticket.isMuted(now));
        assertTrue(ticket.isMuted(now + SECOND_NS));
        assertFalse(ticket.isMuted(now + SECOND_NS + 1));
        assertTrue(ticket.acceptRing(now + SECOND_NS + 1));
        assertEquals("one", ticket.vgpu);
    }
}
