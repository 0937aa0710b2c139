package io.hawser.check;

/** The command line is wrong; the message describes the error. */
final class UsageException extends Exception {
    private static final long serialVersionUID = 1L;

    UsageException(String message) {
        super(message);
    }
}
