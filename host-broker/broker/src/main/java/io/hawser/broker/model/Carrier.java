package io.hawser.broker.model;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/** The transport of a session's records. */
public enum Carrier {
    /** A socket that the front door has accepted. */
    TCP,
    /** A region of shared memory. */
    SHM,
    /** RDMA, on which a session that began over TCP has agreed. A vGPU allows it beside its carriers. */
    RDMA;

    /** Its name in REST, metrics and messages to workers. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The carrier of a label. */
    public static Optional<Carrier> of(String label) {
        return Arrays.stream(values()).filter(carrier -> carrier.label().equals(label)).findFirst();
    }
}
