package io.hawser.broker.door;

import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Guests that come through the TLS door, by the loopback port from which their relay is about to connect; whoever else
 * connects there is not expected. Thread-safe.
 */
final class Arrivals {
    private final Map<Integer, InetSocketAddress> expected = new ConcurrentHashMap<>();

    /** A relay is about to connect from this port for this guest. */
    void expect(int port, InetSocketAddress guest) {
        expected.put(port, guest);
    }

    /** The guest whose relay connects from this port, once; null when there is none. */
    InetSocketAddress take(int port) {
        return expected.remove(port);
    }
}
