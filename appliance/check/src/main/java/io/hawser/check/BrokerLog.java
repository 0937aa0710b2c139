package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Finds the lines of a broker's log that report a defect. The broker's log contains the lines of its workers. */
final class BrokerLog {
    // The worker's text for a session that a defect ended; the texts of Netty and Quarkus for unhandled exceptions.
    private static final Pattern DEFECT = Pattern.compile(
        "internal error|a task raised an exception|an exception was thrown by|failed, error id",
        Pattern.CASE_INSENSITIVE);
    private static final Pattern WARNING = Pattern.compile("^\\S+ \\S+ (WARN|ERROR) ");
    private static final int MAX_LINES = 20; // limits the report of one log

    private BrokerLog() {
    }

    /** The first lines that report a defect; empty if there are none. */
    static List<String> defects(Path log) {
        return lines(log, DEFECT);
    }

    /** The first warnings and errors, among them the reasons of sessions that were lost; empty if there are none. */
    static List<String> warnings(Path log) {
        return lines(log, WARNING);
    }

    private static List<String> lines(Path log, Pattern pattern) {
        try (Stream<String> lines = Files.lines(log)) {
            return lines.filter(pattern.asPredicate()).limit(MAX_LINES).map(line -> log.getFileName() + ": " + line)
                .toList();
        } catch (IOException e) {
            throw new CheckException("the broker's log must be readable: " + log, e);
        }
    }
}
