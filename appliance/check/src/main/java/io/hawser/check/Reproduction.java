package io.hawser.check;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** Searches few calls that show a difference again. */
final class Reproduction {
    private static final int MOST_RUNS = 16;

    private final Predicate<List<Integer>> shows;
    private int runs;

    /** @param shows whether a run of these calls alone shows the difference. */
    Reproduction(Predicate<List<Integer>> shows) {
        this.shows = shows;
    }

    /** The smallest list found within a bounded number of runs; empty if even the whole episode does not show it. */
    List<Integer> of(int index, Trace trace) {
        List<Integer> makers = makers(index, trace);
        List<Integer> all = List.copyOf(
            trace.calls().subMap(Trace.episode(index) * Trace.EPISODE_CALLS, true, index, true).keySet());
        for (List<Integer> few : List.of(List.of(index), makers, all)) {
            if (isShownBy(few)) {
                return smaller(few);
            }
        }
        return List.of();
    }

    /** The call and those that made the objects that it uses, their objects, and so on. */
    static List<Integer> makers(int index, Trace trace) {
        Set<Integer> needed = new TreeSet<>(Set.of(index));
        addMakers(index, trace, needed);
        return List.copyOf(needed);
    }

    private static void addMakers(int index, Trace trace, Set<Integer> needed) {
        for (String object : trace.calls().get(index).usedObjects()) {
            trace.calls().subMap(Trace.episode(index) * Trace.EPISODE_CALLS, true, index, false).descendingMap()
                .values().stream()
                .filter(call -> call.writtenObjects().contains(object)).findFirst().filter(c -> needed.add(c.index()))
                .ifPresent(call -> addMakers(call.index(), trace, needed));
        }
    }

    private boolean isShownBy(List<Integer> calls) {
        return runs++ < MOST_RUNS && shows.test(calls);
    }

    /** Leaves out ever smaller parts; the last call stays. */
    private List<Integer> smaller(List<Integer> calls) {
        List<Integer> left = calls;
        for (int part = left.size() / 2; part > 0; part /= 2) {
            for (int from = 0; from + part < left.size();) {
                List<Integer> fewer = new ArrayList<>(left.subList(0, from));
                fewer.addAll(left.subList(from + part, left.size()));
                if (isShownBy(fewer)) {
                    left = fewer;
                } else {
                    from += part;
                }
            }
        }
        return left;
    }

    /** The calls as the value of --pick. */
    static String pick(List<Integer> calls) {
        return calls.stream().map(String::valueOf).collect(Collectors.joining(","));
    }
}
