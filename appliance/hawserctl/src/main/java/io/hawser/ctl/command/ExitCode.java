package io.hawser.ctl.command;

import io.hawser.client.Failure;

/** The exit codes of hawserctl. Scripts rely on them, and the manual page lists them. */
public final class ExitCode {
    /** The command succeeded. */
    public static final int OK = 0;
    /** The broker rejected the request, or failed. */
    public static final int REFUSED = 1;
    /** The command line, or a file that it names, is wrong. */
    public static final int USAGE = 2;
    /** No broker answers. */
    public static final int NOT_REACHABLE = 3;
    /** The broker does not know the user, or the user lacks the right. */
    public static final int NOT_ALLOWED = 4;
    /** The named object does not exist. */
    public static final int NOT_FOUND = 5;
    /** The object has another owner than expected: another client changed it, and hawserctl did nothing. */
    public static final int CHANGED = 6;

    private ExitCode() {
    }

    /** The exit code of a failure. */
    public static int of(Failure failure) {
        return switch (failure) {
            case REFUSED -> REFUSED;
            case INVALID -> USAGE;
            case NOT_REACHABLE -> NOT_REACHABLE;
            case NOT_ALLOWED -> NOT_ALLOWED;
            case NOT_FOUND -> NOT_FOUND;
            case CHANGED -> CHANGED;
        };
    }
}
