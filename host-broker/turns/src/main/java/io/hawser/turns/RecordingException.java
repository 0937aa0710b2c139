package io.hawser.turns;

/** A text is no recording; the message names the line. */
public final class RecordingException extends Exception {
    private static final long serialVersionUID = 1;

    /** A defect of a line, counted from 1. */
    public RecordingException(long line, String message) {
        super("line " + line + ": " + message);
    }
}
