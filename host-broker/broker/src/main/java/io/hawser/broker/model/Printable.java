package io.hawser.broker.model;

/** Makes text from guests and workers safe for logs, metrics and pages. */
public final class Printable {
    private Printable() {
    }

    /**
     * Cuts a text and replaces control characters by '?': line breaks forge log lines, and escapes control terminals.
     */
    public static String text(String raw, int maxCharacters) {
        String cut = raw.length() <= maxCharacters ? raw : raw.substring(0, maxCharacters);
        StringBuilder safe = new StringBuilder(cut.length());
        cut.replace('\t', ' ').codePoints().forEach(c -> {
            int kind = Character.getType(c);
            boolean unsafe = Character.isISOControl(c) || kind == Character.FORMAT || kind == Character.SURROGATE
                || kind == Character.LINE_SEPARATOR || kind == Character.PARAGRAPH_SEPARATOR;
            safe.appendCodePoint(unsafe ? '?' : c);
        });
        return safe.toString();
    }
}
