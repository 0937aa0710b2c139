package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;

/** A process that stands still until its end or this object's. */
final class StoppedProcess implements AutoCloseable {
    private final ProcessHandle process;

    /** Stops a process that there is. */
    StoppedProcess(long pid) throws IOException, InterruptedException {
        process = ProcessHandle.of(pid).orElseThrow();
        Signals.send("STOP", pid);
    }

    @Override
    public void close() throws IOException, InterruptedException {
        if (!Signals.reaches("CONT", process.pid())) {
            assertFalse(process.isAlive(), () -> "still stopped: " + process.pid()); // the test may have killed it
        }
    }
}
