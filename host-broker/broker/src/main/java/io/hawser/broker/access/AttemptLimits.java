package io.hawser.broker.access;

import java.net.InetAddress;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Failed attempts to log in, by peer: so many in a time, then the peer waits until the time is over. An IPv6 network of
 * 64 bits is one peer, since who has one address of it has all. Thread-safe.
 */
public final class AttemptLimits {
    /** Peers that are remembered; stops a flood of addresses from filling the memory. Who failed longest ago goes. */
    private static final int MAX_PEERS = 4096;
    private static final int IPV6_NETWORK_BYTES = 8;

    private final int maxFailures;
    private final long windowNs;
    private final LongSupplier nowNs;
    private final Map<String, Failures> peers = new LinkedHashMap<>();

    private record Failures(int count, long sinceNs) { }

    /** Allows so many failures of a peer in a time of the given clock. */
    public AttemptLimits(int maxFailures, Duration window, LongSupplier nowNs) {
        this.maxFailures = maxFailures;
        windowNs = window.toNanos();
        this.nowNs = nowNs;
    }

    /** Seconds that a peer must wait before its next attempt; 0 when it need not. */
    public synchronized long waitSeconds(String address) {
        Failures failures = peers.get(network(address));
        if (failures == null || failures.count() < maxFailures) {
            return 0;
        }
        long leftNs = failures.sinceNs() + windowNs - nowNs.getAsLong();
        return leftNs <= 0 ? 0 : 1 + leftNs / 1_000_000_000L;
    }

    /** Counts a failed attempt. */
    public synchronized void failed(String address) {
        long now = nowNs.getAsLong();
        String network = network(address);
        Failures before = peers.remove(network);
        boolean goesOn = before != null && now - before.sinceNs() < windowNs;
        peers.put(network, goesOn ? new Failures(before.count() + 1, before.sinceNs()) : new Failures(1, now));
        if (peers.size() > MAX_PEERS) {
            peers.remove(peers.keySet().iterator().next());
        }
    }

    /** Forgets the failures of a peer that has logged in. */
    public synchronized void succeeded(String address) {
        peers.remove(network(address));
    }

    private static String network(String address) {
        try {
            // A literal: nothing is looked up.
            byte[] bytes = InetAddress.ofLiteral(address).getAddress();
            return bytes.length == 16 ? Arrays.toString(Arrays.copyOf(bytes, IPV6_NETWORK_BYTES)) : address;
        } catch (IllegalArgumentException e) {
            return address;
        }
    }
}
