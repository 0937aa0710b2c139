package io.hawser.check;

import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * The target of a figure.
 *
 * @param kind the comparison.
 * @param number a factor, an addition in the figure's unit, or the limit itself.
 */
record Target(Kind kind, double number) {
    /** The kind of comparison. */
    enum Kind {
        /** At least so many times the native figure. */
        AT_LEAST_NATIVE_TIMES,
        /** At most so many times the native figure. */
        AT_MOST_NATIVE_TIMES,
        /** At most so much more than the native figure. */
        AT_MOST_NATIVE_PLUS,
        /** At least so many times a plain socket's figure. */
        AT_LEAST_SOCKET_TIMES,
        /** At most so much more than a plain socket's figure. */
        AT_MOST_SOCKET_PLUS,
        /** At least this value. */
        AT_LEAST,
        /** At most this value. */
        AT_MOST,
        /** There is no target. */
        NONE
    }

    static final Target NONE = new Target(Kind.NONE, 0);

    /** Whether a figure reaches the target; empty without a target, or without a value to compare with. */
    Optional<Boolean> isReached(double value, OptionalDouble nativeValue, OptionalDouble socket) {
        OptionalDouble reference = switch (kind) {
            case AT_LEAST_NATIVE_TIMES, AT_MOST_NATIVE_TIMES, AT_MOST_NATIVE_PLUS -> nativeValue;
            case AT_LEAST_SOCKET_TIMES, AT_MOST_SOCKET_PLUS -> socket;
            case AT_LEAST, AT_MOST -> OptionalDouble.of(0);
            case NONE -> OptionalDouble.empty();
        };
        if (reference.isEmpty()) {
            return Optional.empty();
        }
        double against = reference.getAsDouble();
        return Optional.of(switch (kind) {
            case AT_LEAST_NATIVE_TIMES, AT_LEAST_SOCKET_TIMES -> value >= against * number;
            case AT_LEAST -> value >= number;
            case AT_MOST_NATIVE_TIMES -> value <= against * number;
            case AT_MOST_NATIVE_PLUS, AT_MOST_SOCKET_PLUS, AT_MOST -> value <= against + number;
            case NONE -> throw new IllegalStateException();
        });
    }

    /** The target as text, such as {@code <= native + 3}; empty if there is none. */
    String text() {
        String shown = String.format(Locale.ROOT, number == Math.rint(number) ? "%.0f" : "%.2f", number);
        return switch (kind) {
            case AT_LEAST_NATIVE_TIMES -> ">= " + shown + " native";
            case AT_MOST_NATIVE_TIMES -> number == 1 ? "<= native" : "<= " + shown + " native";
            case AT_MOST_NATIVE_PLUS -> "<= native + " + shown;
            case AT_LEAST_SOCKET_TIMES -> ">= " + shown + " socket";
            case AT_MOST_SOCKET_PLUS -> "<= socket + " + shown;
            case AT_LEAST -> ">= " + shown;
            case AT_MOST -> "<= " + shown;
            case NONE -> "";
        };
    }
}
