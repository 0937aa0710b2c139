package io.hawser.ctl.terminal;

import java.io.PrintWriter;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Shows on a terminal how long a command has waited for an answer. */
public final class Waiting implements AutoCloseable {
    private static final long STEP_NS = TimeUnit.SECONDS.toNanos(1);

    private final PrintWriter err;
    private final Thread thread;
    private volatile boolean isOver;

    private Waiting(PrintWriter err, String text) {
        this.err = err;
        thread = Thread.ofPlatform().daemon().name("hawserctl-waiting").unstarted(() -> show(text));
    }

    /**
     * Starts to show the time after the first second; without a terminal it shows nothing.
     *
     * @param text names the action: {@code moving a}.
     */
    public static Waiting start(PrintWriter err, String text) {
        return start(err, text, Terminal.isInteractive());
    }

    /** As {@link #start(PrintWriter, String)}, for tests. */
    static Waiting start(PrintWriter err, String text, boolean isTerminal) {
        Waiting waiting = new Waiting(err, text);
        if (isTerminal) {
            waiting.thread.start();
        }
        return waiting;
    }

    private void show(String text) {
        int shown = 0;
        for (long startNs = System.nanoTime(); !isOver; LockSupport.parkNanos(STEP_NS / 10)) {
            int seconds = (int) ((System.nanoTime() - startNs) / STEP_NS);
            if (seconds > shown) {
                shown = seconds;
                err.print("\r" + text + ", " + seconds + " s");
                err.flush();
            }
        }
        if (shown > 0) {
            err.print("\r" + " ".repeat(text.length() + 12) + "\r");
            err.flush();
        }
    }

    /** Removes the line. */
    @Override
    public void close() {
        isOver = true;
        LockSupport.unpark(thread);
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
