package io.hawser.hypervisor.log;

import java.io.PrintStream;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** The log: one line per event on stderr, with systemd's levels under systemd. Any thread. */
public final class Log {
    private static final boolean JOURNAL = System.getenv("JOURNAL_STREAM") != null;
    private static final PrintStream ERR = System.err;
    private static final SimpleFormatter FORMATTER = new SimpleFormatter();

    private Log() {
    }

    /** Sends the log records of System.Logger and of libraries to this log. */
    public static void takeAll() {
        LogManager.getLogManager().reset();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord entry) {
                int level = entry.getLevel().intValue();
                if (level < Level.INFO.intValue()) {
                    return;
                }
                String text = FORMATTER.formatMessage(entry)
                    + (entry.getThrown() == null ? "" : ": " + entry.getThrown());
                if (level >= Level.SEVERE.intValue()) {
                    error("", text);
                } else if (level >= Level.WARNING.intValue()) {
                    warn("", text);
                } else {
                    info("", text);
                }
            }

            @Override
            public void flush() {
                // each line is written at once
            }

            @Override
            public void close() {
                // stderr stays open
            }
        };
        Logger.getLogger("").addHandler(handler);
    }

    /** Logs a completed action. */
    public static void info(String domain, String text) {
        write(6, "", domain, text);
    }

    /** Logs a condition that an administrator should look into. */
    public static void warn(String domain, String text) {
        write(4, "warning: ", domain, text);
    }

    /** Logs a failure of hawserd to do its work. */
    public static void error(String domain, String text) {
        write(3, "error: ", domain, text);
    }

    /** Logs a defect of hawserd with its stack trace. */
    public static void fault(String domain, Throwable fault) {
        StringBuilder text = new StringBuilder("a fault of hawserd: " + fault);
        for (StackTraceElement at : fault.getStackTrace()) {
            text.append(" < ").append(at);
        }
        write(3, "error: ", domain, text.toString());
    }

    private static void write(int level, String word, String domain, String text) {
        String line = (domain.isEmpty() ? "" : "domain " + domain + ": ") + word + text;
        String clean = line.codePoints().map(c -> Character.isISOControl(c) ? ' ' : c)
            .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
        ERR.println(JOURNAL ? "<" + level + ">" + clean
            : Instant.now().truncatedTo(ChronoUnit.MILLIS) + " " + clean);
    }
}
