package io.hawser.client;

/** Text from guests, brokers and files. */
public final class Text {
    private Text() {
    }

    /** Removes control characters, which could command the terminal, from foreign text. */
    public static String printable(String text) {
        return text.codePoints()
            .map(c -> Character.isISOControl(c) || Character.getType(c) == Character.FORMAT ? '?' : c)
            .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
    }
}
