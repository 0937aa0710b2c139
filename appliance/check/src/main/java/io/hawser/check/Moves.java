package io.hawser.check;

import java.util.List;
import java.util.OptionalDouble;

/**
 * The moves in one direction.
 *
 * @param count without the failed ones.
 * @param failed those that left the memory where it was.
 * @param bytes of all.
 * @param medianRate of the moves that had bytes, in GB/s; empty if there was none.
 * @param worstRate the lowest of them.
 */
record Moves(int count, int failed, long bytes, OptionalDouble medianRate, OptionalDouble worstRate) {
    /** The moves out of the GPU, or in. */
    static Moves of(List<Move> all, boolean areOut) {
        List<Move> moves = all.stream().filter(move -> move.isOut() == areOut && !move.isFailed()).toList();
        int failed = (int) all.stream().filter(move -> move.isOut() == areOut && move.isFailed()).count();
        // A program without memory has no rate.
        double[] rates = moves.stream().filter(move -> move.bytes() > 0).mapToDouble(Move::rate).sorted().toArray();
        return new Moves(moves.size(), failed, moves.stream().mapToLong(Move::bytes).sum(),
            rates.length == 0 ? OptionalDouble.empty() : OptionalDouble.of(Ratios.median(rates)),
            rates.length == 0 ? OptionalDouble.empty() : OptionalDouble.of(rates[0]));
    }
}
