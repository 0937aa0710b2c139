package io.hawser.check;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The reviewed differences between native CUDA and Hawser. Each line of the resource has five columns, separated by
 * {@code |}: function, condition on the arguments, native value, Hawser's value, reason. All but the reason are
 * patterns in which {@code *} stands for any text. A reason that begins with "open" names a defect to be mended.
 */
final class AcceptedDifferences {
    private static final int COLUMNS = 5;
    private static final String OPEN = "open";

    private final List<Entry> entries;
    private final Set<Entry> used = new HashSet<>();

    /**
     * A line of the list.
     *
     * @param text the whole line.
     */
    record Entry(Pattern function, Pattern condition, Pattern nativeValue, Pattern ownValue, String reason,
        String text) {
        boolean isOpen() {
            return reason.startsWith(OPEN);
        }
    }

    private AcceptedDifferences(List<Entry> entries) {
        this.entries = entries;
    }

    /** Reads lines; empty ones and those with # are comments. */
    static AcceptedDifferences of(Stream<String> lines) {
        return new AcceptedDifferences(lines.map(String::strip).filter(line -> !line.isEmpty() && line.charAt(0) != '#')
            .map(AcceptedDifferences::entry).toList());
    }

    /** Reads lists of the program; {@code names} are names of resources. */
    static AcceptedDifferences ofResources(List<String> names) {
        return of(names.stream().flatMap(AcceptedDifferences::lines));
    }

    /** The lines of a resource of the program. */
    static Stream<String> lines(String name) {
        try (InputStream stream = AcceptedDifferences.class.getResourceAsStream(name);
            BufferedReader reader = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
            return reader.lines().toList().stream();
        } catch (IOException e) {
            throw new CheckException("the list of accepted differences cannot be read: " + name, e);
        }
    }

    private static Entry entry(String line) {
        String[] columns = line.split("\\|", -1);
        if (columns.length != COLUMNS || columns[4].isBlank()) {
            throw new CheckException("an accepted difference has five columns, the last one a reason: " + line);
        }
        return new Entry(pattern(columns[0]), pattern(columns[1]), pattern(columns[2]), pattern(columns[3]),
            columns[4].strip(), line);
    }

    /** A pattern in which {@code *} stands for any text. */
    static Pattern pattern(String text) {
        return Pattern.compile(Stream.of(text.strip().split("\\*", -1)).map(Pattern::quote)
            .reduce((first, second) -> first + ".*" + second).orElse(""));
    }

    /** The entry that a difference matches. */
    Optional<Entry> find(TraceComparison.Difference difference) {
        Optional<Entry> found = entries.stream().filter(e -> e.function.matcher(difference.call().function()).matches()
            && e.condition.matcher(difference.call().arguments()).matches()
            && e.nativeValue.matcher(difference.first()).matches()
            && e.ownValue.matcher(difference.second()).matches()).findFirst();
        found.ifPresent(used::add);
        return found;
    }

    /** The entries that no difference has matched. */
    List<Entry> stale() {
        return entries.stream().filter(entry -> !used.contains(entry)).toList();
    }
}
