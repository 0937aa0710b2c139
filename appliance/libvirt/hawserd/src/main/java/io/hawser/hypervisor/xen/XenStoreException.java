package io.hawser.hypervisor.xen;

import java.io.IOException;

/** XenStore has rejected a request. */
public final class XenStoreException extends IOException {
    private static final long serialVersionUID = 1;

    private final String error;

    /**
     * @param what the request, without its value.
     * @param error XenStore's name of the error: {@code ENOENT}, {@code EACCES}.
     */
    XenStoreException(String what, String error) {
        super("XenStore refuses: " + what + ": " + error);
        this.error = error;
    }

    /** The name of the error: {@code ENOENT}. */
    public String error() {
        return error;
    }
}
