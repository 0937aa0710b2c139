package io.hawser.client;

/** The failure of a request or of its preparation, with one line for the user. */
public final class ClientException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final Failure failure;
    private final int status;

    /** A failure without an answer. */
    public ClientException(Failure failure, String message) {
        this(failure, 0, message);
    }

    /** A failure with the HTTP status of the answer. */
    public ClientException(Failure failure, int status, String message) {
        super(message);
        this.failure = failure;
        this.status = status;
    }

    /** The HTTP status of the answer; 0 if there was none. */
    public int status() {
        return status;
    }

    /** The kind of the failure. */
    public Failure failure() {
        return failure;
    }
}
