package io.hawser.broker.web;

import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;

/**
 * Counts the connections of the REST interface in total, by peer and by standing. Strangers never get the reserved
 * places. Half of those is for users of this machine, the other half for trusted peers. Thread-safe; no method waits
 * for the network.
 */
final class Places {
    private final int max;
    private final int reserved;
    private final int maxPerPeer;
    private final Map<String, Integer> perPeer = new HashMap<>();
    private final Map<Standing, Integer> perStanding = new EnumMap<>(Standing.class);

    /** The answer to a peer that connects. */
    sealed interface Answer permits Place, Full {}

    /**
     * A refusal.
     *
     * @param detail the rule, for the log.
     */
    record Full(WebRefusal refusal, String detail) implements Answer {}

    /** One connection's place. */
    final class Place implements Answer {
        private final String peer;
        private final Standing standing;
        private boolean held = true;

        private Place(String peer, Standing standing) {
            this.peer = peer;
            this.standing = standing;
        }

        /** Releases the place; a second call does nothing. */
        void release() {
            synchronized (Places.this) {
                if (held) {
                    held = false;
                    perPeer.computeIfPresent(peer, (name, count) -> count == 1 ? null : count - 1);
                    perStanding.merge(standing, -1, Integer::sum);
                }
            }
        }
    }

    /**
     * Starts without connections.
     *
     * @param max connections of all peers.
     * @param reserved number of them that strangers cannot use; below {@code max}.
     * @param maxPerPeer connections of one peer.
     */
    Places(int max, int reserved, int maxPerPeer) {
        this.max = max;
        this.reserved = reserved;
        this.maxPerPeer = maxPerPeer;
    }

    /** Takes a place for a peer that connects. */
    synchronized Answer enter(String peer, Standing standing) {
        if (perPeer.getOrDefault(peer, 0) >= maxPerPeer) {
            return new Full(WebRefusal.PEER, "connections of one peer must be at most " + maxPerPeer);
        }
        if (!hasRoom(standing)) {
            return new Full(WebRefusal.PLACES, "connections must be at most " + max + ", of which " + reserved
                + " are reserved");
        }
        perPeer.merge(peer, 1, Integer::sum);
        perStanding.merge(standing, 1, Integer::sum);
        return new Place(peer, standing);
    }

    private boolean hasRoom(Standing standing) {
        int strangers = count(Standing.STRANGER);
        return count() < max && switch (standing) {
            case STRANGER -> strangers < max - reserved;
            // Each standing leaves the other's half of the reserved places free.
            case LOCAL, TRUSTED -> strangers + count(standing) < max - reserved / 2;
        };
    }

    /** Number of connections of one standing. */
    synchronized int count(Standing standing) {
        return perStanding.getOrDefault(standing, 0);
    }

    /** Number of all connections. */
    synchronized int count() {
        return perStanding.values().stream().mapToInt(Integer::intValue).sum();
    }
}
