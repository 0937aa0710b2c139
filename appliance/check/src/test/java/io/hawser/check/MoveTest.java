package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class MoveTest {
    private static final String BEGIN = "2026-11-28 07:15:00,123 DEBUG [Swapping] ";
    private static final String LOG = BEGIN + "vGPU t1: out: bytes=64000000000 ms=1000 stays=\n"
        + BEGIN + "vGPU t2: in: bytes=53000000000 ms=1000 problem=\n"
        + BEGIN + "vGPU n1: out: bytes=0 ms=0 stays=\n"
        + BEGIN + "vGPU t2: out: bytes=2000000 ms=0 stays=\n"
        + BEGIN + "vGPU t-3: in: bytes=0 ms=7 problem=the host has no room\n"
        + BEGIN + "vGPU t1 waits for vGPU t2: bytes=5 ms=1\n";

    @Test
    void shouldReadTheMovesOfTheBrokersLog() {
        assertEquals(List.of(new Move(true, 64_000_000_000L, 1000, ""), new Move(false, 53_000_000_000L, 1000, ""),
            new Move(true, 0, 0, ""), new Move(true, 2_000_000, 0, ""),
            new Move(false, 0, 7, "the host has no room")), Move.of(LOG));
        assertEquals(List.of(), Move.of(""));
    }

    @Test
    void shouldCountAMoveOfNoMillisecondAsOne() {
        assertEquals(64, new Move(true, 64_000_000_000L, 1000, "").rate());
        assertEquals(2, new Move(true, 2_000_000, 0, "").rate());
    }

    @Test
    void shouldSummarizeEachDirection() {
        // The move without bytes counts, but has no rate.
        assertEquals(new Moves(3, 0, 64_002_000_000L, OptionalDouble.of(33), OptionalDouble.of(2)),
            Moves.of(Move.of(LOG), true));
        assertEquals(new Moves(1, 1, 53_000_000_000L, OptionalDouble.of(53), OptionalDouble.of(53)),
            Moves.of(Move.of(LOG), false));
    }

    @Test
    void shouldHaveNoRateWithoutMoves() {
        assertEquals(new Moves(0, 0, 0, OptionalDouble.empty(), OptionalDouble.empty()), Moves.of(List.of(), true));
    }
}
