package io.hawser.check;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The lines of a run of random_calls.
 *
 * @param description checksum of the functions that the run could call; empty for none.
 * @param functions their names.
 * @param calls by index.
 */
record Trace(String description, Set<String> functions, NavigableMap<Integer, TracedCall> calls) {
    /** Each episode has objects of its own (random_calls.cu, EPISODE_CALLS). */
    static final int EPISODE_CALLS = 100;
    /** Fixed calls have indices from here on (cases.h, FIRST_CASE). */
    static final int FIRST_CASE = 1_000_000;

    private static final String DESCRIPTION = "description ";
    private static final String FUNCTION = "function ";

    static Trace of(Stream<String> lines) {
        NavigableMap<Integer, TracedCall> calls = new TreeMap<>();
        List<String> descriptions = new ArrayList<>();
        Set<String> functions = new TreeSet<>();
        lines.forEach(line -> {
            if (line.startsWith(DESCRIPTION)) {
                descriptions.add(line.substring(DESCRIPTION.length()));
            }
            if (line.startsWith(FUNCTION)) {
                functions.add(line.substring(FUNCTION.length()));
            }
            TracedCall call = TracedCall.parse(line);
            if (call != null) {
                calls.put(call.index(), call);
            }
        });
        return new Trace(descriptions.isEmpty() ? "" : descriptions.getFirst(), functions, calls);
    }

    /** Reads an output of random_calls. */
    static Trace of(Path file) {
        try (Stream<String> lines = Files.lines(file, StandardCharsets.ISO_8859_1)) {
            return of(lines);
        } catch (IOException | UncheckedIOException e) {
            throw new CheckException("the trace cannot be read: " + file, e);
        }
    }

    /** Its random calls with indices below a number, and all its fixed calls. */
    Trace first(int count) {
        NavigableMap<Integer, TracedCall> chosen = new TreeMap<>(calls.headMap(count, false));
        chosen.putAll(calls.tailMap(FIRST_CASE, true));
        return new Trace(description, functions, chosen);
    }

    boolean hasCases() {
        return !calls.tailMap(FIRST_CASE, true).isEmpty();
    }

    /** Its random calls alone. */
    Trace withoutCases() {
        return new Trace(description, functions, calls.headMap(FIRST_CASE, false));
    }

    /** The functions that the run could call and did not. */
    Set<String> uncalled() {
        Set<String> uncalled = new TreeSet<>(functions);
        calls.values().forEach(call -> uncalled.remove(call.function()));
        return uncalled;
    }

    /** The calls that ended their process, for --end-after of another run; empty for none. */
    String processEnds() {
        return calls.values().stream().filter(TracedCall::endsProcess).map(call -> Integer.toString(call.index()))
            .collect(Collectors.joining(","));
    }

    static int episode(int index) {
        return index / EPISODE_CALLS;
    }
}
