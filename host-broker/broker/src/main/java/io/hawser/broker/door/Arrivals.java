package io.hawser.broker.door;

import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Maps the source address of a relay's connection to the guest behind it. The key is the whole loopback address, since
 * another process can use the same port at another loopback address. Thread-safe.
 */
final class Arrivals {
    private final Map<InetSocketAddress, InetSocketAddress> expected = new ConcurrentHashMap<>();

    /** Records that a relay will connect from this address for this guest. */
    void expect(InetSocketAddress relay, InetSocketAddress guest) {
        expected.put(relay, guest);
    }

    /** Removes and returns the guest whose relay connects from this address; null when there is none. */
    InetSocketAddress take(InetSocketAddress relay) {
        return expected.remove(relay);
    }
}
