package io.hawser.broker.store;

/** The database cannot be used; the message says why, without a password. */
public final class DatabaseException extends Exception {
    private static final long serialVersionUID = 1L;

    DatabaseException(String message, Throwable cause) {
        super(message, cause);
    }
}
