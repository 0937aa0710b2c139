package io.hawser.broker.posix;

import java.io.IOException;

/** A system call failed; the message names the call and its error. */
public final class PosixException extends IOException {
    private static final long serialVersionUID = 1L;

    PosixException(String call, String error) {
        super(call + ": " + error);
    }
}
