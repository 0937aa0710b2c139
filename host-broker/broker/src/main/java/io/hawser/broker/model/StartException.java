package io.hawser.broker.model;

import io.quarkus.runtime.PreventFurtherStepsException;

/** The broker cannot start; the message is one line for the operator. */
public final class StartException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private static final int EXIT_CODE = 1;

    /** Creates the exception. */
    public StartException(String message) {
        // For this cause Quarkus prints only the message, without a stack trace.
        super(message, new PreventFurtherStepsException("hawser-broker: " + message, EXIT_CODE));
    }
}
