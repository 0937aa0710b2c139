package io.hawser.broker.web;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/** Peers with a recent valid login. Thread-safe. */
final class KnownPeers {
    /** Stops a user with many addresses from filling the memory; the peer with the oldest login goes. */
    private static final int MAX_PEERS = 1024;

    private final long lifeNs;
    private final LongSupplier nowNs;
    private final Map<String, Long> loginNs = new LinkedHashMap<>();

    /** Remembers a login for this time of the given clock. */
    KnownPeers(long lifeNs, LongSupplier nowNs) {
        this.lifeNs = lifeNs;
        this.nowNs = nowNs;
    }

    /** Notes a valid login of a peer. */
    synchronized void add(String peer) {
        loginNs.remove(peer);
        loginNs.put(peer, nowNs.getAsLong());
        if (loginNs.size() > MAX_PEERS) {
            loginNs.remove(loginNs.keySet().iterator().next());
        }
    }

    /** Whether a peer's last login is recent enough. */
    synchronized boolean has(String peer) {
        Long since = loginNs.get(peer);
        if (since == null) {
            return false;
        }
        if (nowNs.getAsLong() - since < lifeNs) {
            return true;
        }
        loginNs.remove(peer);
        return false;
    }
}
