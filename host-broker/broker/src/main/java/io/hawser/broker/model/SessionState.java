package io.hawser.broker.model;

/** Where a session is in its life. */
public enum SessionState {
    /** Admitted, waits for a worker. */
    STARTING,
    /** Its worker has the guest's socket or region. */
    RUNNING,
    /** It was told to end, or its worker says that it has. */
    ENDING
}
