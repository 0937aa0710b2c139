package io.hawser.broker.store;

import java.sql.SQLException;

/** H2 has closed its file after a failed write, for example on a full disk. The next user reopens the file. */
public final class ClosedFileException extends SQLException {
    private static final long serialVersionUID = 1L;
    /** H2's "the database has been closed". */
    private static final int CLOSED = 90098;
    private static final String CLOSED_STATE = "90098";

    private final String reason;

    /**
     * Reports a closed file.
     *
     * @param reason why H2 closed the file.
     * @param cause the failure that this call met; null when the call did not reach H2.
     */
    ClosedFileException(String message, String reason, Exception cause) {
        super(message, CLOSED_STATE, CLOSED, cause);
        this.reason = reason;
    }

    ClosedFileException(String reason, Exception cause) {
        this(cause.getMessage(), reason, cause);
    }

    /** Why H2 closed the file: the operating system's message where there is one. Never empty. */
    public String reason() {
        return reason;
    }
}
