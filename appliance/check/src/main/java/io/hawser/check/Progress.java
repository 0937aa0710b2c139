package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;

/**
 * Shows progress on stderr: a changing line on a terminal, else a line for each phase, and one now and then for the
 * steps of a long phase. Any thread.
 */
final class Progress implements AutoCloseable {
    private static final int COLUMNS = 100;
    private static final long LINE_EVERY_NANOS = Duration.ofSeconds(20).toNanos();

    private final boolean terminal;
    private boolean shown;
    private long lastLine = System.nanoTime();

    Progress() {
        terminal = isTerminal(Path.of("/proc/self/fd/2"));
    }

    /** System.console() tests standard output, which may be a file while stderr is a terminal. */
    private static boolean isTerminal(Path descriptor) {
        try {
            String file = Files.readSymbolicLink(descriptor).toString();
            return file.startsWith("/dev/pts/") || file.startsWith("/dev/tty") || file.equals("/dev/console");
        } catch (IOException e) {
            // Without /proc: print one line for each phase, which suits every kind of output.
            return false;
        }
    }

    /** Starts a phase. */
    synchronized void phase(String format, Object... arguments) {
        clear();
        System.err.println("hawser-check: " + String.format(Locale.ROOT, format, arguments));
        lastLine = System.nanoTime();
    }

    /** Shows a step of the phase; elsewhere than on a terminal, only if there has been no line for a while. */
    synchronized void step(String format, Object... arguments) {
        if (terminal) {
            String text = String.format(Locale.ROOT, format, arguments);
            System.err.printf("\r%-" + COLUMNS + "s", text.substring(0, Math.min(COLUMNS, text.length())));
            System.err.flush();
            shown = true;
        } else if (System.nanoTime() - lastLine > LINE_EVERY_NANOS) {
            phase(format, arguments);
        }
    }

    private void clear() {
        if (shown) {
            System.err.print("\r" + " ".repeat(COLUMNS) + "\r");
            shown = false;
        }
    }

    @Override
    public synchronized void close() {
        clear();
        System.err.flush();
    }
}
