package io.hawser.broker.door;

import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Guests that come through the TLS door, by the whole loopback address from which their relay is about to connect. A
 * process at another loopback address can have the same port. Thread-safe.
 */
final class Arrivals {
    private final Map<InetSocketAddress, InetSocketAddress> expected = new ConcurrentHashMap<>();

    /** A relay is about to connect from this address for this guest. */
    void expect(InetSocketAddress relay, InetSocketAddress guest) {
        expected.put(relay, guest);
    }

    /** The guest whose relay connects from this address, once; null when there is none. */
    InetSocketAddress take(InetSocketAddress relay) {
        return expected.remove(relay);
    }
}
