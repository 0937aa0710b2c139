package io.hawser.broker.machine;

/**
 * The result of one check.
 *
 * @param level its severity.
 * @param text one line with the result and, unless it is good, its consequence and a remedy.
 */
public record Finding(Level level, String text) {
    /** The severity of a finding. */
    public enum Level {
        /** Good. */
        FOUND,
        /** A part works less well or not at all. */
        NOTE,
        /** Hawser, or the configured GPU, cannot work. */
        MISSING
    }

    static Finding found(String text) {
        return new Finding(Level.FOUND, text);
    }

    static Finding note(String text) {
        return new Finding(Level.NOTE, text);
    }

    static Finding missing(String text) {
        return new Finding(Level.MISSING, text);
    }
}
