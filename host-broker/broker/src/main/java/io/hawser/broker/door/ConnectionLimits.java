package io.hawser.broker.door;

import io.hawser.broker.model.PeerName;
import java.util.HashMap;
import java.util.Map;

/**
 * Counts connections, over all and by peer. A refused peer's connection takes no half-open place from others while the
 * peer reads why. Thread-safe: the TLS door has several event loops; the front door,
 * which has one, never waits here.
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

    /**
     * A peer's place, from connect to the end of its session. Each part is given back once, however often it is asked.
     */
    final class Place {
        private final String peer;
        private boolean opening = true;
        private boolean lingers;
        private boolean held = true;

        private Place(String peer) {
            this.peer = peer;
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

        /** The last record is on its way; the connection stays while the peer reads it. */
        void linger() {
            synchronized (ConnectionLimits.this) {
                opened();
                if (held && !lingers) {
                    lingers = true;
                    lingering++;
                }
            }
        }

        /** The connection, or its session, is over. */
        void release() {
            synchronized (ConnectionLimits.this) {
                opened();
                if (held) {
                    held = false;
                    perPeer.computeIfPresent(peer, (name, count) -> count == 1 ? null : count - 1);
                    lingering -= lingers ? 1 : 0;
                }
            }
        }
    }

    /**
     * Takes a place. Refused connections have one too, while they linger.
     *
     * @param peer as {@link PeerName} has it.
     */
    synchronized Place enter(String peer) {
        halfOpen++;
        perPeer.merge(peer, 1, Integer::sum);
        return new Place(peer);
    }

    /** Why a peer that has just entered is one too many; null when it is not. */
    synchronized String excess(String peer) {
        if (halfOpen > maxHalfOpen) {
            return "half-open connections must be at most " + maxHalfOpen;
        }
        return perPeer.get(peer) > maxPerPeer ? "connections of one peer must be at most " + maxPerPeer : null;
    }

    /** Whether so many linger, of this peer or of all, that the door closes a refused one without a word. */
    synchronized boolean flooded(String peer) {
        return excess(peer) != null && (lingering >= maxHalfOpen || perPeer.get(peer) > 2 * maxPerPeer);
    }

    synchronized int halfOpen() {
        return halfOpen;
    }

    synchronized int peers() {
        return perPeer.size();
    }
}
