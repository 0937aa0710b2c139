package io.hawser.broker.web;

import java.util.Locale;

/** Why the door closes a connection: the label of the metric. */
enum WebRefusal {
    /** The peer has as many connections as one peer may have. */
    PEER,
    /** No place is left for a peer of this standing. */
    PLACES,
    /** A TLS handshake or a request was not there in time. */
    TIMEOUT,
    /** A request's head has too many bytes or fields. */
    HEAD,
    /** The peer sends no request of HTTP, or one of two meanings. */
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
