package io.hawser.broker.machine;

/**
 * One thing that was looked at.
 *
 * @param level how much it matters.
 * @param text in one line what was found and, unless it is as it should be, what follows and what to do.
 */
public record Finding(Level level, String text) {
    /** How much a finding matters. */
    public enum Level {
        /** As it should be. */
        FOUND,
        /** Something works less well, or only in part. */
        NOTE,
        /** Hawser, or the GPU that was asked for, cannot work so. */
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
