package io.hawser.broker.model;

/** Texts that came from outside, in messages. */
public final class Texts {
    private static final int MAX_SHOWN = 64; // a message is no place for a whole request

    private Texts() {
    }

    /** Printable and short; "null" for nothing. */
    public static String shown(String text) {
        return text == null ? "null" : Printable.text(text, MAX_SHOWN);
    }
}
