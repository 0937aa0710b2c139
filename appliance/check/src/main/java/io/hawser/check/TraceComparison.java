package io.hawser.check;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;

/**
 * Compares two runs of random_calls with the same calls. A difference is followed by others that it causes: a line that
 * uses an object whose value or validity may differ is a follow-up and does not count, nor does state that differed
 * already. After a crash or a hang of the second run alone, the comparison goes on at the next episode. The result of a
 * call that crashes in the first run is undefined and is not compared.
 */
final class TraceComparison {
    /** The fields of a line. */
    enum Field { RESULT, ARGUMENTS, OUTPUTS, LAST, SYNC, CONTENTS, MISSING }

    /**
     * A difference that no earlier one explains.
     *
     * @param call of the first run.
     * @param first the first run's value of the field.
     * @param second the second run's.
     */
    record Difference(TracedCall call, Field field, String first, String second) {
        /** Differences with one cause mostly have the same. */
        String group() {
            return call.function() + " " + field + (field == Field.RESULT ? " " + first + " " + second : "");
        }

        String text() {
            return call.index() + " " + call.call() + ": " + (field == Field.RESULT ? "" : field + " ") + first
                + " and " + second;
        }
    }

    private final boolean resultsOnly;
    private final List<Difference> differences = new ArrayList<>();
    private final Set<String> doubtful = new TreeSet<>();
    private final Map<Field, List<String>> state = new HashMap<>();
    private int episode = -1;
    private boolean isOver;
    private boolean isMarked;
    private int compared;
    private int followUps;
    private int undefined;

    private TraceComparison(boolean resultsOnly) {
        this.resultsOnly = resultsOnly;
    }

    /**
     * Compares all lines.
     *
     * @param resultsOnly whether only result codes count, because the runs are on different devices.
     */
    static TraceComparison of(Trace first, Trace second, boolean resultsOnly) {
        TraceComparison comparison = new TraceComparison(resultsOnly);
        Set<Integer> indices = new TreeSet<>(first.calls().keySet());
        indices.addAll(second.calls().keySet());
        for (int index : indices) {
            if (Trace.episode(index) != comparison.episode) {
                comparison.episode = Trace.episode(index);
                comparison.isOver = false;
                comparison.startProcess();
            }
            comparison.compare(first.calls().get(index), second.calls().get(index));
        }
        return comparison;
    }

    List<Difference> differences() {
        return differences;
    }

    /** The number of calls whose results were compared. */
    int compared() {
        return compared;
    }

    /** The number of calls that an earlier difference may have changed. */
    int followUps() {
        return followUps;
    }

    /** The number of calls with a crash in the first run. */
    int undefined() {
        return undefined;
    }

    private void startProcess() {
        doubtful.clear();
        state.clear();
        isMarked = false;
    }

    private void compare(TracedCall a, TracedCall b) {
        if (isOver) {
            followUps++;
        } else if (a == null || b == null) {
            differ(a == null ? b : a, Field.MISSING, presence(a), presence(b));
            isOver = true;
        } else if (a.endsProcess()) {
            undefined++;
            startProcess();
        } else if (b.endsProcess()) {
            differ(a, Field.RESULT, a.result(), b.result());
            isOver = true;
        } else {
            compareLines(a, b);
            keepState(a, b);
        }
    }

    private static String presence(TracedCall call) {
        return call == null ? "no line" : "a line";
    }

    private void compareLines(TracedCall a, TracedCall b) {
        if (isFollowUp(a, b)) {
            followUps++;
            doubt(a, b, a.isSuccess() != b.isSuccess() && !a.isQuery());
            doubtful.addAll(a.usedBlocks()); // their contents may depend on a doubtful object
            doubtful.addAll(b.usedBlocks());
            return;
        }
        compared++;
        if (!a.call().equals(b.call())) {
            differ(a, Field.ARGUMENTS, a.call(), b.call());
            doubt(a, b, true);
        } else if (!a.result().equals(b.result())) {
            differ(a, Field.RESULT, a.result(), b.result());
            doubt(a, b, a.isSuccess() != b.isSuccess() && !a.isQuery());
        } else if (!a.outputs().equals(b.outputs())) {
            differUnlessDevice(a, Field.OUTPUTS, a.outputs(), b.outputs());
            doubt(a, b, false);
        } else if (!a.last().equals(b.last()) && !differedAlready(Field.LAST, a.last(), b.last())) {
            differUnlessDevice(a, Field.LAST, a.last(), b.last());
        } else if (!a.sync().equals(b.sync())) {
            differUnlessDevice(a, Field.SYNC, a.sync(), b.sync());
        } else {
            a.writtenObjects().forEach(doubtful::remove); // both runs have made it anew
            compareContents(a, b);
        }
    }

    private void compareContents(TracedCall a, TracedCall b) {
        for (Map.Entry<String, String> block : a.contents().entrySet()) {
            String other = b.contents().getOrDefault(block.getKey(), "none");
            if (!other.equals(block.getValue()) && doubtful.add(block.getKey())) {
                differUnlessDevice(a, Field.CONTENTS, block.getKey() + ":" + block.getValue(),
                    block.getKey() + ":" + other);
            }
        }
    }

    /** Whether an earlier difference may be the cause of this line's. */
    private boolean isFollowUp(TracedCall a, TracedCall b) {
        List<String> sync = state.get(Field.SYNC);
        boolean wasOther = sync != null && !sync.getFirst().equals(sync.getLast());
        boolean asksLast = a.function().equals("cudaPeekAtLastError") || a.function().equals("cudaGetLastError");
        return wasOther || asksLast && differedAlready(Field.LAST, a.result(), b.result()) || uses(a) || uses(b)
            || !a.call().equals(b.call()) && (isMarked || resultsOnly);
    }

    private boolean uses(TracedCall call) {
        return call.usedObjects().stream().anyMatch(doubtful::contains);
    }

    private boolean differedAlready(Field field, String a, String b) {
        return List.of(a, b).equals(state.get(field));
    }

    /** Both runs' objects that this line makes, and those that it uses if it may have changed them. */
    private void doubt(TracedCall a, TracedCall b, boolean used) {
        isMarked = true;
        for (TracedCall call : List.of(a, b)) {
            doubtful.addAll(call.writtenObjects());
            if (used) {
                doubtful.addAll(call.usedObjects());
            }
        }
        a.contents().forEach((block, sum) -> {
            if (!Objects.equals(sum, b.contents().get(block))) {
                doubtful.add(block);
            }
        });
    }

    private void keepState(TracedCall a, TracedCall b) {
        state.put(Field.SYNC, List.of(a.sync(), b.sync()));
        if (!a.last().isEmpty()) {
            state.put(Field.LAST, List.of(a.last(), b.last()));
        }
    }

    private void differUnlessDevice(TracedCall call, Field field, String first, String second) {
        if (!resultsOnly) {
            differ(call, field, first, second);
        }
        isMarked = true;
    }

    private void differ(TracedCall call, Field field, String first, String second) {
        differences.add(new Difference(call, field, first, second));
        isMarked = true;
    }
}
