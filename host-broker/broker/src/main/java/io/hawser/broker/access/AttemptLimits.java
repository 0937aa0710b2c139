package io.hawser.broker.access;

import io.hawser.broker.model.PeerName;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Limits failed attempts to log in, by peer and by claimed name. After the permitted failures of a window, further
 * attempts wait until the window ends. An attempt counts from its start, so parallel attempts cannot exceed the limit.
 * An IPv6 network of 64 bits counts as one peer. A success clears only the failures of its own name at its own peer.
 *
 * <p>Other peers cannot lock a user out for ever by failing under the user's name. A peer is familiar for a day after
 * the user has logged in from it. Attempts of a familiar peer under that name have a separate count. Thread-safe.
 */
public final class AttemptLimits {
    /** Number of peers that must fail together before a name waits; a single peer cannot make a name wait. */
    private static final int PEERS_OF_A_NAME = 4;
    /** Keys of each table; stops a flood of addresses or names from filling the memory. */
    private static final int MAX_KEYS = 4096;
    /** Familiar peers of one user at a time; stops a user from filling the memory. */
    private static final int MAX_FAMILIAR = 16;
    private static final long FAMILIAR_NS = Duration.ofDays(1).toNanos();
    private static final long SECOND_NS = Duration.ofSeconds(1).toNanos();

    private final int maxFailures;
    private final long windowNs;
    private final LongSupplier nowNs;
    private final Map<String, Tally> peers = new HashMap<>();
    private final Map<String, Tally> names = new HashMap<>();
    private final Map<String, Tally> pairs = new HashMap<>(); // familiar peer and name
    private final Map<String, Map<String, Long>> familiar = new LinkedHashMap<>(); // peers and their times, by name

    /** Attempts under one key: the running attempts, and the failures of a window that the first failure begins. */
    private static final class Tally {
        private final Map<String, Tally> table;
        private final String key;
        private final int limit;
        private final Map<String, Integer> failures = new HashMap<>(); // by the other key
        private int failed;
        private int running;
        private long sinceNs;

        Tally(Map<String, Tally> table, String key, int limit) {
            this.table = table;
            this.key = key;
            this.limit = limit;
        }

        int failed(long now, long windowNs) {
            if (failed > 0 && now - sinceNs >= windowNs) {
                failures.clear();
                failed = 0;
            }
            return failed;
        }

        void fail(String other, long now) {
            if (failed++ == 0) {
                sinceNs = now;
            }
            failures.merge(other, 1, Integer::sum);
        }

        void forget(String other) {
            Integer count = failures.remove(other);
            failed -= count == null ? 0 : count;
        }

        void dropIfEmpty() {
            if (failed == 0 && running == 0) {
                table.remove(key, this);
            }
        }
    }

    /** One attempt; it ends exactly once. */
    public final class Attempt {
        private final String peer;
        private final String name;
        private final List<Tally> tallies;
        private final long waitSeconds;

        private Attempt(String peer, String name, List<Tally> tallies, long waitSeconds) {
            this.peer = peer;
            this.name = name;
            this.tallies = tallies;
            this.waitSeconds = waitSeconds;
        }

        /** Seconds that the peer must wait before its next attempt; 0 when this attempt has begun and must end. */
        public long waitSeconds() {
            return waitSeconds;
        }

        /** Ends the attempt; {@code right} when the secret was right. */
        public void end(boolean right) {
            synchronized (AttemptLimits.this) {
                long now = nowNs.getAsLong();
                for (Tally tally : tallies) {
                    tally.running--;
                    if (right) {
                        tally.forget(other(tally));
                    } else {
                        tally.failed(now, windowNs);
                        tally.fail(other(tally), now);
                    }
                    tally.dropIfEmpty();
                }
                if (right && !name.isEmpty()) {
                    remember(peer, name, now);
                }
            }
        }

        /** Ends an attempt without a comparison. */
        public void withdraw() {
            synchronized (AttemptLimits.this) {
                for (Tally tally : tallies) {
                    tally.running--;
                    tally.dropIfEmpty();
                }
            }
        }

        private String other(Tally tally) {
            return tally.table == peers ? name : peer;
        }
    }

    /** Permits so many failures of a peer in a window of the given clock, and four times as many for a name. */
    public AttemptLimits(int maxFailures, Duration window, LongSupplier nowNs) {
        this.maxFailures = maxFailures;
        windowNs = window.toNanos();
        this.nowNs = nowNs;
    }

    /**
     * The seconds for which past failures lock a peer or a name; 0 when neither is locked.
     *
     * @param name the claimed name; empty to check only the peer.
     */
    public synchronized long lockedSeconds(String address, String name) {
        long now = nowNs.getAsLong();
        long seconds = 0;
        for (Tally tally : tallies(network(address), name, now)) {
            if (tally.failed(now, windowNs) >= tally.limit) {
                seconds = Math.max(seconds, 1 + (tally.sinceNs + windowNs - now) / SECOND_NS);
            }
        }
        return seconds;
    }

    /**
     * Begins an attempt. Unless it must wait, {@link Attempt#end} or {@link Attempt#withdraw} must end it.
     *
     * @param name the claimed name; empty where guesses at a name are no danger, as for a random token.
     */
    public synchronized Attempt begin(String address, String name) {
        long now = nowNs.getAsLong();
        String peer = network(address);
        List<Tally> tallies = tallies(peer, name, now);
        long wait = lockedSeconds(address, name);
        for (Tally tally : tallies) {
            if (wait == 0 && tally.failed + tally.running >= tally.limit) {
                wait = 1; // running attempts may succeed
            }
        }
        if (wait > 0) {
            return new Attempt(peer, name, List.of(), wait);
        }
        for (Tally tally : tallies) {
            tally.running++;
            tally.table.put(tally.key, tally);
            bound(tally.table, now);
        }
        return new Attempt(peer, name, tallies, 0);
    }

    /** The tallies that an attempt counts for; tallies that are not in their tables yet are empty. */
    private List<Tally> tallies(String peer, String name, long now) {
        if (isFamiliar(peer, name, now)) {
            return List.of(tally(pairs, peer + " " + name, maxFailures));
        }
        List<Tally> tallies = new ArrayList<>(List.of(tally(peers, peer, maxFailures)));
        if (!name.isEmpty()) {
            tallies.add(tally(names, name, PEERS_OF_A_NAME * maxFailures));
        }
        return tallies;
    }

    private static Tally tally(Map<String, Tally> table, String key, int limit) {
        Tally tally = table.get(key);
        return tally == null ? new Tally(table, key, limit) : tally;
    }

    /** Removes the key with the fewest failures: a flood of new keys cannot free a locked one. */
    private void bound(Map<String, Tally> table, long now) {
        if (table.size() > MAX_KEYS) {
            table.values().stream().filter(tally -> tally.running == 0)
                .min(Comparator.comparingInt(tally -> tally.failed(now, windowNs)))
                .ifPresent(least -> table.remove(least.key));
        }
    }

    private boolean isFamiliar(String peer, String name, long now) {
        Long since = familiar.getOrDefault(name, Map.of()).get(peer);
        return since != null && now - since < FAMILIAR_NS;
    }

    private void remember(String peer, String name, long now) {
        Map<String, Long> times = familiar.remove(name);
        times = times == null ? new LinkedHashMap<>() : times;
        familiar.put(name, times);
        times.remove(peer);
        times.put(peer, now);
        if (times.size() > MAX_FAMILIAR) {
            times.remove(times.keySet().iterator().next());
        }
        if (familiar.size() > MAX_KEYS) {
            familiar.remove(familiar.keySet().iterator().next());
        }
    }

    /** Number of keys in all tables. */
    synchronized int size() {
        return peers.size() + names.size() + pairs.size() + familiar.size();
    }

    private static String network(String address) {
        try {
            // A literal: needs no name service.
            return PeerName.of(InetAddress.ofLiteral(address));
        } catch (IllegalArgumentException e) {
            return address;
        }
    }
}
