package io.hawser.broker.model;

/** The broker admits no session for a guest. The message gives the reason, for people and for the guest. */
public final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;

    /** Carries the reason. */
    public RefusedException(String message) {
        super(message);
    }
}
