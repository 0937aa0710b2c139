package io.hawser.broker.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * The log of changes of a pool: which vGPUs and tokens have changed, by revision. Writers hold the pool's lock, so
 * revisions have no gaps and the order of commits. Each method runs in its caller's transaction.
 */
public final class PoolLog {
    /** Entries to keep; a broker that has missed more reads everything. */
    static final int KEPT = 10_000;
    /** Rows from a revision on, its only parameter. */
    static final String SINCE =
        "select revision, stamp, kind, name from pool_log where revision >= ? order by revision";
    private static final int TRIM_EVERY = 1000;

    private PoolLog() {
    }

    /** What a key names. */
    public enum Kind {
        /** A vGPU, by its name. */
        VGPU,
        /** A token, by its key id. */
        TOKEN
    }

    /** A changed vGPU or token. */
    public record Key(Kind kind, String name) {
        /** The key of a vGPU. */
        public static Key vgpu(String name) {
            return new Key(Kind.VGPU, name);
        }

        /** The key of a token. */
        public static Key token(String keyId) {
            return new Key(Kind.TOKEN, keyId);
        }
    }

    /**
     * A place in the log.
     *
     * @param revision counts from 1; 0 is before the first entry.
     * @param stamp of its entry, at random: a database that has fallen back to a backup gives out revisions again.
     */
    public record Place(long revision, long stamp) {
        /** Before the first entry. */
        public static final Place START = new Place(0, 0);
    }

    /**
     * The changes since a place.
     *
     * @param last the newest place.
     * @param isComplete false when the log does not have the place (any more); the reader must then read everything.
     * @param keys of the changes, the oldest first; empty when incomplete.
     */
    public record News(Place last, boolean isComplete, Set<Key> keys) {}

    /**
     * Adds changes. The other brokers are notified at the commit.
     *
     * @return the newest revision.
     */
    public static long add(Connection connection, Set<Key> keys) throws SQLException {
        long revision = 0;
        // One round trip: the pool's lock is held.
        try (PreparedStatement insert = connection.prepareStatement("insert into pool_log (revision, stamp, kind, name)"
            + " select (select coalesce(max(revision), 0) from pool_log) + k.n, k.stamp, k.kind, k.name from"
            + " unnest(?, ?, ?) with ordinality as k (stamp, kind, name, n) returning revision; "
            + "select pg_notify('" + PeerStore.CHANNEL + "', '')")) {
            insert.setArray(1, connection.createArrayOf("bigint", keys.stream()
                .map(key -> ThreadLocalRandom.current().nextLong()).toArray()));
            insert.setArray(2, connection.createArrayOf("varchar", keys.stream().map(key -> key.kind.name())
                .toArray()));
            insert.setArray(3, connection.createArrayOf("varchar", keys.stream().map(key -> key.name).toArray()));
            insert.execute();
            try (ResultSet rows = insert.getResultSet()) {
                while (rows.next()) {
                    revision = Math.max(revision, rows.getLong(1));
                }
            }
        }
        if (revision / TRIM_EVERY != (revision - keys.size()) / TRIM_EVERY) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("delete from pool_log where revision <= " + (revision - KEPT));
            }
        }
        return revision;
    }

    /** The newest place. */
    public static Place last(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery(
            "select revision, stamp from pool_log order by revision desc limit 1")) {
            return row.next() ? new Place(row.getLong(1), row.getLong(2)) : Place.START;
        }
    }

    /** The changes after a place. */
    public static News since(Connection connection, Place seen) throws SQLException {
        try (PreparedStatement select = connection.prepareStatement(SINCE)) {
            select.setLong(1, seen.revision);
            try (ResultSet rows = select.executeQuery()) {
                return news(connection, rows, seen);
            }
        }
    }

    /** The changes after a place, from the rows of {@link #SINCE}. */
    static News news(Connection connection, ResultSet rows, Place seen) throws SQLException {
        Set<Key> keys = new LinkedHashSet<>();
        Place last = Place.START;
        boolean isComplete = seen.equals(Place.START);
        long next = 1;
        while (rows.next()) {
            last = new Place(rows.getLong(1), rows.getLong(2));
            if (last.equals(seen)) {
                isComplete = true;
            } else {
                // From the start: the first entries may be trimmed away.
                isComplete &= seen.revision > 0 || last.revision == next;
                keys.add(new Key(Kind.valueOf(rows.getString(3)), rows.getString(4)));
            }
            next = last.revision + 1;
        }
        return isComplete ? new News(last, true, keys) : new News(last(connection), false, Set.of());
    }
}
