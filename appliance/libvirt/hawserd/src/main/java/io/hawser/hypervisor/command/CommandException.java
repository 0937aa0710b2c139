package io.hawser.hypervisor.command;

/** A command failed; the message is a sentence for the administrator. */
public final class CommandException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The kind of failure. */
    public enum Kind {
        /** There is no such domain. */
        NO_DOMAIN,
        /** The command itself is wrong. */
        INVALID,
        /** The command is not possible at present. */
        REFUSED
    }

    private final Kind kind;

    /** @param message a sentence. */
    public CommandException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** The command is not possible at present. */
    static CommandException refused(String sentence) {
        return new CommandException(Kind.REFUSED, sentence);
    }

    public Kind kind() {
        return kind;
    }
}
