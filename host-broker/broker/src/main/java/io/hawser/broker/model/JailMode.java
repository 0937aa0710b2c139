package io.hawser.broker.model;

/** How strictly workers are jailed. */
public enum JailMode {
    /** As far as the machine lets them. */
    AUTO,
    /** In full, or the broker does not start. */
    STRICT,
    /** Not at all. */
    OFF
}
