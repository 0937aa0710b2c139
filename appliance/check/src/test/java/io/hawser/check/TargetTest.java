package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.check.Target.Kind;
import java.util.Optional;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class TargetTest {
    private static final OptionalDouble NOTHING = OptionalDouble.empty();

    private static Optional<Boolean> reached(Kind kind, double number, double value) {
        return new Target(kind, number).isReached(value, OptionalDouble.of(10), OptionalDouble.of(20));
    }

    @Test
    void shouldHoldAFigureAgainstTheNativeOne() {
        assertEquals(Optional.of(true), reached(Kind.AT_LEAST_NATIVE_TIMES, 0.5, 5));
        assertEquals(Optional.of(false), reached(Kind.AT_LEAST_NATIVE_TIMES, 0.5, 4.9));
        assertEquals(Optional.of(true), reached(Kind.AT_MOST_NATIVE_TIMES, 1, 10));
        assertEquals(Optional.of(false), reached(Kind.AT_MOST_NATIVE_TIMES, 1, 10.1));
        assertEquals(Optional.of(true), reached(Kind.AT_MOST_NATIVE_PLUS, 3, 13));
        assertEquals(Optional.of(false), reached(Kind.AT_MOST_NATIVE_PLUS, 3, 13.1));
    }

    @Test
    void shouldHoldAFigureAgainstASocketOrALimit() {
        assertEquals(Optional.of(true), reached(Kind.AT_LEAST_SOCKET_TIMES, 0.9, 18));
        assertEquals(Optional.of(false), reached(Kind.AT_LEAST_SOCKET_TIMES, 0.9, 17));
        assertEquals(Optional.of(true), reached(Kind.AT_MOST_SOCKET_PLUS, 10, 30));
        assertEquals(Optional.of(false), reached(Kind.AT_MOST_SOCKET_PLUS, 10, 31));
        assertEquals(Optional.of(false), reached(Kind.AT_MOST, 5, 5.1));
    }

    @Test
    void shouldNotJudgeWithoutAReference() {
        assertEquals(Optional.empty(), new Target(Kind.AT_MOST_NATIVE_PLUS, 3).isReached(1, NOTHING, NOTHING));
        assertEquals(Optional.empty(), new Target(Kind.AT_LEAST_SOCKET_TIMES, 1).isReached(1, NOTHING, NOTHING));
        assertEquals(Optional.empty(), Target.NONE.isReached(1, OptionalDouble.of(1), OptionalDouble.of(1)));
        assertEquals(Optional.of(true), new Target(Kind.AT_MOST, 5).isReached(1, NOTHING, NOTHING));
        assertEquals(Optional.of(true), new Target(Kind.AT_LEAST, 0.9).isReached(0.9, NOTHING, NOTHING));
        assertEquals(Optional.of(false), new Target(Kind.AT_LEAST, 0.9).isReached(0.89, NOTHING, NOTHING));
    }
}
