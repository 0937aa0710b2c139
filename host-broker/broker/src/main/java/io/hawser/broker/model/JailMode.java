package io.hawser.broker.model;

/** The strictness of the workers' jail. */
public enum JailMode {
    /** As complete as the machine permits. */
    AUTO,
    /** Complete; otherwise the broker does not start. */
    STRICT,
    /** None. */
    OFF
}
