package io.hawser.check;

/** The check could not be carried out; the message is for its user. */
final class CheckException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    CheckException(String message) {
        super(message);
    }

    CheckException(String message, Throwable cause) {
        super(message, cause);
    }
}
