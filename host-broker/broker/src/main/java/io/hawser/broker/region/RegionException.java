package io.hawser.broker.region;

/** The broker cannot serve or remove a region; the message gives the client the reason. */
public final class RegionException extends Exception {
    private static final long serialVersionUID = 1L;

    /** Kind of the reason. */
    public enum Kind {
        /** The settings are invalid. */
        INVALID,
        /** A conflict with the name, the file, another broker or the machine's memory. */
        CONFLICT,
        /** The region does not exist. */
        MISSING
    }

    private final Kind kind;

    RegionException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** Kind of the reason. */
    public Kind kind() {
        return kind;
    }
}
