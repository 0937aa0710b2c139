package io.hawser.ctl;

/** Why a command ends, in one line for its user. */
public final class CtlException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int exitCode;
    private final int status;

    /** An end with one of {@link ExitCode}. */
    public CtlException(int exitCode, String message) {
        this(exitCode, 0, message);
    }

    /** The same for an answer with a status of HTTP. */
    public CtlException(int exitCode, int status, String message) {
        super(message);
        this.exitCode = exitCode;
        this.status = status;
    }

    /** The status of the broker's answer; 0 when there was none. */
    public int status() {
        return status;
    }

    /** One of {@link ExitCode}. */
    public int exitCode() {
        return exitCode;
    }
}
