package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;

/** Signals to processes that a test has started. */
final class Signals {
    private Signals() {
    }

    /**
     * Sends a signal.
     *
     * @param signal its name without SIG.
     */
    static void send(String signal, long pid) throws IOException, InterruptedException {
        assertTrue(pid > 1, () -> "not a process that a test has started: " + pid); // 0: the test's own group
        assertEquals(0, new ProcessBuilder("kill", "-" + signal, Long.toString(pid)).inheritIO().start().waitFor());
    }
}
