package io.hawser.hypervisor.model;

/**
 * A domain's XML asks for something impossible. The message names the attribute and its range, for the author of the
 * XML.
 */
public final class WishException extends Exception {
    private static final long serialVersionUID = 1;

    public WishException(String message) {
        super(message);
    }

    public WishException(String message, Throwable cause) {
        super(message, cause);
    }
}
