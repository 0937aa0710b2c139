package io.hawser.hypervisor;

import io.hawser.ctl.CtlException;

/** A share could not be had or given back; the message is a sentence for who runs the hypervisor. */
public final class ShareException extends Exception {
    private static final long serialVersionUID = 1;

    /** What follows from it. */
    public enum Reason {
        /** The broker does not answer, or cannot now: worth another try. */
        AWAY,
        /** The broker, or this host, refuses. */
        REFUSED,
        /** It is another host's. */
        FOREIGN,
        /** Another host has changed whose it is since it was looked at: worth another look at once. */
        CHANGED
    }

    private final Reason reason;

    /** Makes one. */
    public ShareException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    /** Makes one that has a cause. */
    public ShareException(Reason reason, String message, Throwable cause) {
        super(message, cause);
        this.reason = reason;
    }

    /** Whether the broker has answered that it cannot yet: it has not been running for long, or has much to do. */
    boolean isNotYet() {
        return getCause() instanceof CtlException known && known.status() == 503;
    }

    /** What follows from it. */
    public Reason reason() {
        return reason;
    }
}
