package io.hawser.check;

import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The functions that random_calls never calls (run.h). Each line of the resource has two columns, separated by
 * {@code |}: a pattern of functions, and the reason.
 */
final class NeverCalled {
    private static final String LIST = "never-called-functions";

    private final List<Pattern> patterns;

    private NeverCalled(List<Pattern> patterns) {
        this.patterns = patterns;
    }

    static NeverCalled ofResource() {
        return of(AcceptedDifferences.lines(LIST));
    }

    /** Reads lines; those with # are comments. */
    static NeverCalled of(Stream<String> lines) {
        return new NeverCalled(lines.filter(line -> !line.startsWith("#")).map(NeverCalled::pattern).toList());
    }

    private static Pattern pattern(String line) {
        String[] columns = line.split("\\|", -1);
        if (columns.length != 2 || columns[1].isBlank()) {
            throw new CheckException("a function that is never called has a reason: " + line);
        }
        return AcceptedDifferences.pattern(columns[0]);
    }

    /** The functions that a run did not call although the list does not name them. */
    List<String> missing(Trace trace) {
        return trace.uncalled().stream().filter(name -> patterns.stream().noneMatch(p -> p.matcher(name).matches()))
            .toList();
    }
}
