package io.hawser.broker.model;

import io.quarkus.runtime.PreventFurtherStepsException;

/** The broker cannot start; the message is one line for whoever starts it. */
public final class StartException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private static final int EXIT_CODE = 1;

    /** Makes one. */
    public StartException(String message) {
        // Quarkus prints the message of such a cause alone, without a stack trace that would bury it.
        super(message, new PreventFurtherStepsException("hawser-broker: " + message, EXIT_CODE));
    }
}
