package io.hawser.hypervisor.xen;

import java.io.IOException;

/** XenStore has refused a request. */
public final class XenStoreException extends IOException {
    private static final long serialVersionUID = 1;

    private final String error;

    /**
     * Makes one.
     *
     * @param what the request, without a value.
     * @param error the name that XenStore gives: {@code ENOENT}, {@code EACCES}.
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
