package io.hawser.broker.door;

import java.util.HashMap;
import java.util.Map;

/**
 * Counts connections, over all and by peer address. Thread-safe: the TLS door has several event loops; the front door,
 * which has one, never waits here.
 */
final class ConnectionLimits {
    private final int maxHalfOpen;
    private final int maxPerPeer;
    private final Map<String, Integer> perPeer = new HashMap<>();
    private int halfOpen;

    ConnectionLimits(int maxHalfOpen, int maxPerPeer) {
        this.maxHalfOpen = maxHalfOpen;
        this.maxPerPeer = maxPerPeer;
    }

    /**
     * A peer's place, from connect to the end of its session. Each part is given back once, however often it is asked.
     */
    final class Place {
        private final String address;
        private boolean opening = true;
        private boolean held = true;

        private Place(String address) {
            this.address = address;
        }

        /** The handshake is over. */
        void opened() {
            synchronized (ConnectionLimits.this) {
                if (opening) {
                    opening = false;
                    halfOpen--;
                }
            }
        }

        /** The connection, or its session, is over. */
        void release() {
            synchronized (ConnectionLimits.this) {
                opened();
                if (held) {
                    held = false;
                    perPeer.computeIfPresent(address, (peer, count) -> count == 1 ? null : count - 1);
                }
            }
        }
    }

    /**
     * Takes a place. Refused connections have one too, while they linger.
     *
     * @param address the peer's IP address.
     */
    synchronized Place enter(String address) {
        halfOpen++;
        perPeer.merge(address, 1, Integer::sum);
        return new Place(address);
    }

    /** Why a peer that has just entered is one too many; null when it is not. */
    synchronized String excess(String address) {
        if (halfOpen > maxHalfOpen) {
            return "half-open connections must be at most " + maxHalfOpen;
        }
        return perPeer.get(address) > maxPerPeer ? "connections of one peer must be at most " + maxPerPeer : null;
    }

    /** Whether so many linger that the next is closed without a word. */
    synchronized boolean flooded() {
        return halfOpen > 2 * maxHalfOpen;
    }

    synchronized int halfOpen() {
        return halfOpen;
    }

    synchronized int peers() {
        return perPeer.size();
    }
}
