package io.hawser.ctl;

/** How hawserctl ends; scripts rely on these, and the manual page lists them. */
public final class ExitCode {
    /** Done. */
    public static final int OK = 0;
    /** The broker has refused it, or has failed. */
    public static final int REFUSED = 1;
    /** The command line, or a file that it names, is wrong. */
    public static final int USAGE = 2;
    /** No broker answers. */
    public static final int NOT_REACHABLE = 3;
    /** Not known to the broker, or not allowed to. */
    public static final int NOT_ALLOWED = 4;
    /** There is no such thing. */
    public static final int NOT_FOUND = 5;
    /** It is another's than was expected: somebody has changed it meanwhile, and nothing was done. */
    public static final int CHANGED = 6;

    private ExitCode() {
    }
}
