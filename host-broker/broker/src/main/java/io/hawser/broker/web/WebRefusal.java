package io.hawser.broker.web;

import java.util.Locale;

/** Reason of a closed connection: the label of the metric. */
enum WebRefusal {
    /** The peer has its maximum of connections. */
    PEER,
    /** No place is left for a peer of this standing. */
    PLACES,
    /** A TLS handshake or a request was not complete in time. */
    TIMEOUT,
    /** A request's head has too many bytes or fields. */
    HEAD,
    /** The peer's bytes are not a valid request of HTTP, or its length is ambiguous. */
    MALFORMED,
    /** The peer sends further requests before it has the answers. */
    PIPELINED,
    /** The door cannot set its limits for the connection. */
    INTERNAL;

    /** Value of the metric's label. */
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
