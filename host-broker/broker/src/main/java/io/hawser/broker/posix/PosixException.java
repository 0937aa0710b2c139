package io.hawser.broker.posix;

import java.io.IOException;

/** A system call failed; the message names the call and its error. */
public final class PosixException extends IOException {
    private static final long serialVersionUID = 1L;

    /**
     * Describes a failure.
     *
     * @param call name of the system call.
     * @param error its error, for people.
     */
    public PosixException(String call, String error) {
        super(call + ": " + error);
    }
}
