package io.hawser.hypervisor.broker;

import io.hawser.client.ClientException;

/** hawserd could not obtain or release a share; the message is a sentence for the host's administrator. */
public final class ShareException extends Exception {
    private static final long serialVersionUID = 1;

    /** The kind of failure. */
    public enum Reason {
        /** The broker does not answer, or cannot do it now; a later attempt may succeed. */
        AWAY,
        /** The broker, or this host, rejects the request. */
        REFUSED,
        /** The vGPU belongs to another host. */
        FOREIGN,
        /** Another host has changed the owner since the last picture; a new picture is needed at once. */
        CHANGED
    }

    private final Reason reason;

    public ShareException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    public ShareException(Reason reason, String message, Throwable cause) {
        super(message, cause);
        this.reason = reason;
    }

    /** Whether the broker has answered that it is not ready: it has just started, or is overloaded. */
    public boolean isNotYet() {
        return getCause() instanceof ClientException known && known.status() == 503;
    }

    public Reason reason() {
        return reason;
    }
}
