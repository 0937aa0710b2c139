package io.hawser.worker.session;

/** Makes text of a guest safe for a log: one line, no control characters, bounded. */
public final class LogText {
    private static final int MAX_CHARACTERS = 500; // a guest could fill the log otherwise

    private LogText() {}

    /**
     * Cleans a text.
     *
     * @param text text from a guest, or a reason that quotes it.
     * @return text that is safe to log.
     */
    public static String clean(String text) {
        String cut = text.length() <= MAX_CHARACTERS ? text : text.substring(0, MAX_CHARACTERS) + "...";
        return cut.replaceAll("\\p{Cntrl}", "?");
    }
}
