package io.hawser.hypervisor;

/** What a domain's XML asks for cannot be; the message names the attribute and its range, for who wrote it. */
public final class WishException extends Exception {
    private static final long serialVersionUID = 1;

    /** Makes one. */
    public WishException(String message) {
        super(message);
    }

    /** Makes one that has a cause. */
    public WishException(String message, Throwable cause) {
        super(message, cause);
    }
}
