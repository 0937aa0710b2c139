package io.hawser.broker.web;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class KnownPeersTest {
    private final long[] now = {0};
    private final KnownPeers known = new KnownPeers(10, () -> now[0]);

    @Test
    void shouldForgetAPeerAfterItsTime() {
        assertFalse(known.has("a"));
        known.add("a");
        now[0] = 9;
        assertTrue(known.has("a"));
        known.add("a");
        now[0] = 18;
        assertTrue(known.has("a"));
        now[0] = 19;
        assertFalse(known.has("a"));
    }

    @Test
    void shouldForgetTheOldestOfTooMany() {
        for (int i = 0; i <= 1024; i++) {
            known.add("peer " + i);
        }
        assertFalse(known.has("peer 0"));
        assertTrue(known.has("peer 1"));
        assertTrue(known.has("peer 1024"));
    }
}
