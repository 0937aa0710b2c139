package io.hawser.system;

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
        assertTrue(reaches(signal, pid), () -> "no process for signal " + signal + ": " + pid);
    }

    /** Sends a signal; returns false when the process has ended. */
    static boolean reaches(String signal, long pid) throws IOException, InterruptedException {
        assertTrue(pid > 1, () -> "not a process that a test has started: " + pid); // 0: the test's own group
        return new ProcessBuilder("kill", "-" + signal, Long.toString(pid)).inheritIO().start().waitFor() == 0;
    }
}
