package io.hawser.broker.jail;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** The table of the system calls' names. */
class SystemCallNamesTest {
    @Test
    void shouldNameCallsAndNumberUnknownOnes() {
        SystemCallNames names = new SystemCallNames();
        assertEquals("read", names.of(0));
        assertEquals("openat", names.of(257));
        assertEquals("call 99999", names.of(99999));
    }
}
