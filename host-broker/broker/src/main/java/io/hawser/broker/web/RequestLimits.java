package io.hawser.broker.web;

import java.time.Duration;

/**
 * Limits of the requests of one connection.
 *
 * @param maxHeadBytes bytes of a head's fields; stops a head from filling the heap.
 * @param maxHeadFields fields of a head and of its trailer; each costs some hundred bytes of heap beyond its own
 *     length.
 * @param maxPipelined requests without a complete answer; stops a peer from queueing requests without end.
 * @param timeout from a request's first byte, and from connect for the first, until the request is complete.
 */
record RequestLimits(int maxHeadBytes, int maxHeadFields, int maxPipelined, Duration timeout) {}
