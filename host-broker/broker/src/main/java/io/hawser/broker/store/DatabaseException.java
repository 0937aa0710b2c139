package io.hawser.broker.store;

/** The database is unusable; the message gives the reason, without a password. */
public final class DatabaseException extends Exception {
    private static final long serialVersionUID = 1L;

    DatabaseException(String message, Throwable cause) {
        super(message, cause);
    }
}
