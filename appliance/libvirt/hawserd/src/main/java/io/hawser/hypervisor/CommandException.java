package io.hawser.hypervisor;

/** A command was not done; the message is a sentence for who gave it. */
final class CommandException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** What kind of reason it is. */
    enum Kind {
        /** There is no such domain. */
        NO_DOMAIN,
        /** The command itself is wrong. */
        INVALID,
        /** It cannot be done now. */
        REFUSED
    }

    private final Kind kind;

    CommandException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    Kind kind() {
        return kind;
    }
}
