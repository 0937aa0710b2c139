package io.hawser.check;

import java.util.Map;
import java.util.OptionalDouble;

/**
 * A set that ran.
 *
 * @param name of the set.
 * @param seconds of its programs, by their description, in the order of the runs.
 * @param figure the name of what the set measures.
 * @param value the figure.
 * @param target of the figure.
 * @param out the moves out of the GPU.
 * @param in the moves in.
 */
record SwapRun(String name, Map<String, Double> seconds, String figure, double value, Target target, Moves out,
    Moves in) {
    /** The table of times and moves. */
    String text(boolean markdown) {
        Table times = new Table("lr", name, "s");
        seconds.forEach((what, s) -> times.row(what, TextReport.value(OptionalDouble.of(s))));
        Table moves = new Table("lrrrrr", "moves", "number", "failed", "GB", "median, GB/s", "worst");
        row(moves, "out of the GPU", out);
        row(moves, "in", in);
        return times.text(markdown) + "\n" + moves.text(markdown);
    }

    private static void row(Table table, String name, Moves moves) {
        table.row(name, Integer.toString(moves.count()), Integer.toString(moves.failed()),
            TextReport.value(OptionalDouble.of(moves.bytes() / 1e9)), TextReport.value(moves.medianRate()),
            TextReport.value(moves.worstRate()));
    }
}
