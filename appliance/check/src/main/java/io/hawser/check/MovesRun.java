package io.hawser.check;

import java.util.List;
import java.util.OptionalDouble;

/**
 * A program whose vGPU has moved.
 *
 * @param name of the set.
 * @param moveMs time of each move that ended well.
 * @param reasons of the others.
 * @param aloneMs longest time between two steps of a run without moves; empty if none ran.
 * @param waitMs the same with moves.
 * @param isEqual whether the result is that of a run without moves.
 */
record MovesRun(String name, List<Long> moveMs, List<String> reasons, OptionalDouble aloneMs, double waitMs,
    boolean isEqual) {
    /** The median time of the moves; 0 without one. */
    long medianMs() {
        return moveMs.isEmpty() ? 0 : moveMs.stream().sorted().toList().get(moveMs.size() / 2);
    }

    long worstMs() {
        return moveMs.stream().mapToLong(Long::longValue).max().orElse(0);
    }
}
