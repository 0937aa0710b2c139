package io.hawser.check;

/** The check itself could not be made; the message is for whoever runs it. */
final class CheckException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    CheckException(String message) {
        super(message);
    }

    CheckException(String message, Throwable cause) {
        super(message, cause);
    }
}
