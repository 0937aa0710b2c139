package io.hawser.gpu.software.exec;

/** Ends a thread from inside a called function. */
final class ThreadExit extends RuntimeException {
    static final ThreadExit INSTANCE = new ThreadExit();

    private static final long serialVersionUID = 1;

    private ThreadExit() {
        super(null, null, false, false);
    }
}
