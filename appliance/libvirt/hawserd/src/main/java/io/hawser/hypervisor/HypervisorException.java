package io.hawser.hypervisor;

/** The hypervisor did not do what it was asked; the message is a sentence for who runs it. */
public final class HypervisorException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** What follows from it. */
    public enum Reason {
        /** libvirt does not answer: worth another try when it is connected again. */
        DISCONNECTED,
        /** There is no such domain, or it is gone meanwhile. */
        NO_DOMAIN,
        /** The domain does not run, or does so no more. */
        NOT_RUNNING,
        /** libvirt or QEMU has refused; another try would end the same. */
        REFUSED,
        /** The guest has not done its part in time. */
        TIMEOUT
    }

    private final Reason reason;

    /** Makes one. */
    public HypervisorException(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    /** Makes one that has a cause. */
    public HypervisorException(Reason reason, String message, Throwable cause) {
        super(message, cause);
        this.reason = reason;
    }

    /** What follows from it. */
    public Reason reason() {
        return reason;
    }
}
