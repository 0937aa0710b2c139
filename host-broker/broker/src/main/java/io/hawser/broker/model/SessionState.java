package io.hawser.broker.model;

/** The states of a session. */
public enum SessionState {
    /** Admitted; waits for a worker. */
    STARTING,
    /** Its worker has the guest's socket or region. */
    RUNNING,
    /** The broker has asked it to end, or its worker has reported its end. */
    ENDING
}
