package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Finds the lines of a broker's log that tell of a defect. The lines of workers are in their broker's log. */
final class BrokerLog {
    // The words of a session that a defect ended; those of Netty and Quarkus for an exception without a handler.
    private static final Pattern DEFECT = Pattern.compile(
        "internal error|a task raised an exception|an exception was thrown by|failed, error id",
        Pattern.CASE_INSENSITIVE);
    private static final int MAX_LINES = 20; // of one log, shown

    private BrokerLog() {
    }

    /** The first lines of a log that tell of a defect; empty when the broker has none. */
    static List<String> defects(Path log) {
        try (Stream<String> lines = Files.lines(log)) {
            return lines.filter(DEFECT.asPredicate()).limit(MAX_LINES).map(line -> log.getFileName() + ": " + line)
                .toList();
        } catch (IOException e) {
            throw new CheckException("the broker's log must be readable: " + log, e);
        }
    }
}
