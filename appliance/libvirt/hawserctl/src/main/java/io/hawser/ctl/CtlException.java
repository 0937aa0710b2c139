package io.hawser.ctl;

/** Why a command ends, in one line for its user. */
public final class CtlException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int exitCode;

    /** An end with one of {@link ExitCode}. */
    public CtlException(int exitCode, String message) {
        super(message);
        this.exitCode = exitCode;
    }

    /** One of {@link ExitCode}. */
    public int exitCode() {
        return exitCode;
    }
}
