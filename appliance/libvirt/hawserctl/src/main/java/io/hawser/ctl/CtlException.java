package io.hawser.ctl;

/** The failure of a command, with one line for its user. */
public final class CtlException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int exitCode;
    private final int status;

    /** A failure with one of the codes of {@link ExitCode}. */
    public CtlException(int exitCode, String message) {
        this(exitCode, 0, message);
    }

    /** A failure with the HTTP status of the broker's answer. */
    public CtlException(int exitCode, int status, String message) {
        super(message);
        this.exitCode = exitCode;
        this.status = status;
    }

    /** The HTTP status of the broker's answer; 0 if there was none. */
    public int status() {
        return status;
    }

    /** One of {@link ExitCode}. */
    public int exitCode() {
        return exitCode;
    }
}
