package io.hawser.hypervisor.domain;

/** The hypervisor failed to do an operation; the message is a sentence for the host's administrator. */
public final class HypervisorException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The kind of failure. */
    public enum Reason {
        /** libvirt does not answer; the call may succeed when it is connected again. */
        DISCONNECTED,
        /** There is no such domain, or no longer. */
        NO_DOMAIN,
        /** The domain does not run, or no longer. */
        NOT_RUNNING,
        /** libvirt or QEMU rejected the operation, and would reject it again. */
        REFUSED,
        /** The guest did not respond in time. */
        TIMEOUT
    }

    private final Reason reason;

    public HypervisorException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    public HypervisorException(Reason reason, String message, Throwable cause) {
        super(message, cause);
        this.reason = reason;
    }

    public Reason reason() {
        return reason;
    }
}
