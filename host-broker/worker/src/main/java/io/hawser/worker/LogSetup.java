package io.hawser.worker;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.logging.ConsoleHandler;
import java.util.logging.Formatter;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The worker's log: one line per event on standard error. The broker collects the lines. */
final class LogSetup {
    private LogSetup() {}

    /** Replaces the platform's two-line log format in the whole process. */
    static void install() {
        Logger root = Logger.getLogger("");
        for (Handler handler : root.getHandlers()) {
            root.removeHandler(handler);
        }
        ConsoleHandler handler = new ConsoleHandler();
        handler.setFormatter(new LineFormatter());
        handler.setLevel(Level.ALL);
        root.addHandler(handler);
        root.setLevel(Level.INFO);
    }

    private static final class LineFormatter extends Formatter {
        private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

        private final long pid = ProcessHandle.current().pid();

        @Override
        public String format(LogRecord event) {
            StringWriter text = new StringWriter();
            text.append(TIME.format(event.getInstant())).append(' ').append(event.getLevel().getName())
                .append(" worker[").append(Long.toString(pid)).append("] ").append(formatMessage(event)).append('\n');
            if (event.getThrown() != null) {
                event.getThrown().printStackTrace(new PrintWriter(text, true));
            }
            return text.toString();
        }
    }
}
