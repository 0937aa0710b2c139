package io.hawser.broker.model;

/** Makes text of a guest or worker fit for logs, metrics and pages. */
public final class Printable {
    private Printable() {
    }

    /**
     * The text, cut to a length, with control characters (line breaks forge log lines, escapes drive terminals) as '?'.
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
