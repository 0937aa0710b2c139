package io.hawser.broker.region;

/** A region cannot be served or removed; the message says why, for whoever asked. */
public final class RegionException extends Exception {
    private static final long serialVersionUID = 1L;

    /** What kind of reason it is. */
    public enum Kind {
        /** The settings can never be served. */
        INVALID,
        /** Something else stands in the way: the name, the file, another broker, the machine's memory. */
        CONFLICT,
        /** There is no such region. */
        MISSING
    }

    private final Kind kind;

    RegionException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** What kind of reason. */
    public Kind kind() {
        return kind;
    }
}
