package io.hawser.check;

import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/**
 * A move of a vGPU's memory, as the broker logs it at the level DEBUG.
 *
 * @param isOut whether it was out of the GPU; else it was in.
 * @param bytes may be 0.
 * @param ms time of the copies.
 * @param problem why the memory stays where it was; empty if it moved.
 */
record Move(boolean isOut, long bytes, long ms, String problem) {
    // "stays" of moves out and "problem" of moves in are empty after a success.
    private static final Pattern LINE =
        Pattern.compile("vGPU \\S+: (out|in): bytes=(\\d+) ms=(\\d+) (?:stays|problem)=(.*)");

    /** The moves in a part of a broker's log. */
    static List<Move> of(String log) {
        return LINE.matcher(log).results().map(Move::of).toList();
    }

    private static Move of(MatchResult line) {
        return new Move(line.group(1).equals("out"), Long.parseLong(line.group(2)), Long.parseLong(line.group(3)),
            line.group(4).strip());
    }

    boolean isFailed() {
        return !problem.isEmpty();
    }

    /** Its rate in GB/s. A move of less than 1 ms counts as 1 ms. */
    double rate() {
        return bytes / 1e6 / Math.max(ms, 1);
    }
}
