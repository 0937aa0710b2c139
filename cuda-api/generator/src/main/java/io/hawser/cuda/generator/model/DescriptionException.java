package io.hawser.cuda.generator.model;

/** The description breaks a rule; the message names the function or type, the rule and the values. */
public final class DescriptionException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Creates the exception. */
    public DescriptionException(String message) {
        super(message);
    }
}
