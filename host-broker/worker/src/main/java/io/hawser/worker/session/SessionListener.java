package io.hawser.worker.session;

/** Told of a session's end. Session thread. */
@FunctionalInterface
public interface SessionListener {
    /**
     * The session takes no more calls; its resources are still there.
     *
     * @param reason one line.
     * @param error false when the guest left or the broker ended it.
     */
    void ended(String reason, boolean error);
}
