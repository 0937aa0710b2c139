package io.hawser.worker.session;

/** Receives the end of a session. Session thread. */
@FunctionalInterface
public interface SessionListener {
    /**
     * Called when the session takes no more calls; its resources still exist.
     *
     * @param reason one line.
     * @param error false when the guest left or the broker ended the session.
     */
    void ended(String reason, boolean error);
}
