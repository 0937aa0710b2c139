package io.hawser.broker.model;

import io.hawser.shm.wire.RecordLayout;

/** The reason of a rejected connection: the code of REFUSED and the label of the metric. */
public enum Refusal {
    /** The token is unknown or the proof is wrong. */
    TOKEN(RecordLayout.REFUSED_TOKEN),
    /** Another protocol or another description of the API. */
    VERSION(RecordLayout.REFUSED_VERSION),
    /** No session, quota or worker is free. */
    CAPACITY(RecordLayout.REFUSED_NO_CAPACITY),
    /** Too many connections of one peer, or too many half-open ones. */
    CONNECTIONS(RecordLayout.REFUSED_NO_CAPACITY),
    /** A record that the handshake does not expect. */
    PROTOCOL(RecordLayout.REFUSED_PROTOCOL),
    /** The handshake took too long. */
    TIMEOUT(RecordLayout.REFUSED_PROTOCOL),
    /** The TLS handshake failed; the guest receives an alert instead of REFUSED. */
    TLS(RecordLayout.REFUSED_PROTOCOL),
    /** The broker failed. */
    INTERNAL(RecordLayout.REFUSED_INTERNAL),
    /** Another broker of the pool holds the vGPU; the message is its address, and the guest goes there. */
    MOVED(RecordLayout.REFUSED_MOVED);

    private final int code;

    Refusal(int code) {
        this.code = code;
    }

    /** Code of REFUSED. */
    public int code() {
        return code;
    }

    /** Value of the metric's label. */
    public String label() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }
}
