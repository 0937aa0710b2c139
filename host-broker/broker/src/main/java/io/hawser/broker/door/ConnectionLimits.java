package io.hawser.broker.door;

import io.hawser.broker.model.PeerName;
import java.util.HashMap;
import java.util.Map;

/**
 * Counts connections, in all and by peer. A rejected peer's connection no longer counts as half-open while the peer
 * reads the reason. Thread-safe: the TLS door has several event loops. The front door's single event loop never waits
 * here.
 */
final class ConnectionLimits {
    private final int maxHalfOpen;
    private final int maxPerPeer;
    private final Map<String, Integer> perPeer = new HashMap<>();
    private int halfOpen;
    private int lingering;

    ConnectionLimits(int maxHalfOpen, int maxPerPeer) {
        this.maxHalfOpen = maxHalfOpen;
        this.maxPerPeer = maxPerPeer;
    }

    /** A peer's place, from connect to the end of its session. Repeated calls give each part back only once. */
    final class Place {
        private final String peer;
        private boolean opening = true;
        private boolean lingers;
        private boolean held = true;

        private Place(String peer) {
            this.peer = peer;
        }

        /** Ends the handshake's part of the place. */
        void endHandshake() {
            synchronized (ConnectionLimits.this) {
                if (opening) {
                    opening = false;
                    halfOpen--;
                }
            }
        }

        /** Marks the place as lingering: the last record is sent, and the connection stays while the peer reads it. */
        void linger() {
            synchronized (ConnectionLimits.this) {
                endHandshake();
                if (held && !lingers) {
                    lingers = true;
                    lingering++;
                }
            }
        }

        /** Frees the place when the connection or its session has ended. */
        void release() {
            synchronized (ConnectionLimits.this) {
                endHandshake();
                if (held) {
                    held = false;
                    perPeer.computeIfPresent(peer, (name, count) -> count == 1 ? null : count - 1);
                    lingering -= lingers ? 1 : 0;
                }
            }
        }
    }

    /**
     * Takes a place. Rejected connections have one too, while they linger.
     *
     * @param peer as {@link PeerName} formats it.
     */
    synchronized Place enter(String peer) {
        halfOpen++;
        perPeer.merge(peer, 1, Integer::sum);
        return new Place(peer);
    }

    /** The limit that a newly entered peer exceeds; null when it exceeds none. */
    synchronized String excess(String peer) {
        if (halfOpen > maxHalfOpen) {
            return "half-open connections must be at most " + maxHalfOpen;
        }
        return perPeer.get(peer) > maxPerPeer ? "connections of one peer must be at most " + maxPerPeer : null;
    }

    /** Whether so many rejected connections linger, of this peer or in all, that the door closes this one at once. */
    synchronized boolean isFlooded(String peer) {
        return excess(peer) != null && (lingering >= maxHalfOpen || perPeer.get(peer) > 2 * maxPerPeer);
    }

    synchronized int halfOpen() {
        return halfOpen;
    }

    synchronized int peers() {
        return perPeer.size();
    }
}
