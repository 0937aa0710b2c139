package io.hawser.check;

/** The check could not be carried out; the message is for its user. */
final class CheckException extends RuntimeException {
    /** Exit statuses: the check failed; the request cannot be checked. */
    static final int FAILED = 1;
    static final int REFUSED = 2;
    private static final long serialVersionUID = 1L;

    private final int status;

    CheckException(String message) {
        this(message, FAILED);
    }

    CheckException(String message, int status) {
        super(message);
        this.status = status;
    }

    CheckException(String message, Throwable cause) {
        super(message, cause);
        status = FAILED;
    }

    /** The program's exit status. */
    int status() {
        return status;
    }
}
