package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/** What is being done, on stderr: in one line that changes on a terminal, else a line for each phase. Any thread. */
final class Progress implements AutoCloseable {
    private static final int COLUMNS = 100;

    private final boolean terminal;
    private boolean shown;

    Progress() {
        terminal = isTerminal(Path.of("/proc/self/fd/2"));
    }

    /** System.console() asks about standard output, which may well go to a file while this is watched. */
    private static boolean isTerminal(Path descriptor) {
        try {
            String file = Files.readSymbolicLink(descriptor).toString();
            return file.startsWith("/dev/pts/") || file.startsWith("/dev/tty") || file.equals("/dev/console");
        } catch (IOException e) {
            // No /proc: a line for each phase is what everything can take.
            return false;
        }
    }

    /** A phase begins. */
    synchronized void phase(String format, Object... arguments) {
        clear();
        System.err.println("hawser-check: " + String.format(Locale.ROOT, format, arguments));
    }

    /** A step of it; shown on a terminal only. */
    synchronized void step(String format, Object... arguments) {
        if (terminal) {
            String text = String.format(Locale.ROOT, format, arguments);
            System.err.printf("\r%-" + COLUMNS + "s", text.substring(0, Math.min(COLUMNS, text.length())));
            System.err.flush();
            shown = true;
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
