package io.hawser.broker.model;

/** Prepares external texts for messages. */
public final class Texts {
    private static final int MAX_SHOWN = 64; // keeps messages short

    private Texts() {
    }

    /** Makes a text printable and short; "null" for null. */
    public static String shown(String text) {
        return text == null ? "null" : Printable.text(text, MAX_SHOWN);
    }
}
