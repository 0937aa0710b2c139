package io.hawser.broker.store;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.PeerGpu;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** The brokers of a pool in PostgreSQL, and the pool's lock. Each method runs in its caller's transaction. */
public final class PeerStore {
    /** Channel of the notifications that follow each change of the pool. */
    public static final String CHANNEL = "hawser_pool";

    /** Time that a broker has for another one's act, in seconds. */
    public static final int ACT_SECONDS = 30;
    /** The same for an act that moves the memory of vGPUs, in seconds. */
    public static final int LONG_ACT_SECONDS = 3600;

    private static final long LOCK = 0x6861_7773_6572_0001L; // "hawser", 1: any number that no other program takes
    private static final String RELAX = "set local synchronous_commit to off";
    /** Until the doors are open: guests that come meanwhile try the addresses of the process before. */
    private static final String KEEP_ADDRESSES = "guest = coalesce(nullif(?, ''), guest), "
        + "guest_tls = coalesce(nullif(?, ''), guest_tls), http = coalesce(nullif(?, ''), http), ";
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TypeReference<List<PeerGpu>> GPUS = new TypeReference<>() {};
    private static final String SILENCE_MS =
        "cast(extract(epoch from clock_timestamp() - heartbeat) * 1000 as bigint) as silence_ms";

    private PeerStore() {
    }

    /** Waits until no other broker changes the pool, and keeps others from it until the transaction's end. */
    public static void lock(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("select pg_advisory_xact_lock(" + LOCK + ")");
        }
    }

    /**
     * The state of the pool at the begin of an act.
     *
     * @param epoch of the broker's row; empty without a row.
     * @param news of the log since the broker's place.
     */
    public record Entry(OptionalLong epoch, PoolLog.News news) {}

    /**
     * Begins an act: takes the lock, then reads the broker's epoch and the log, in one round trip, because the
     * other brokers wait meanwhile. Each statement sees what is committed when it begins.
     *
     * @param seen the place in the log that the broker has read.
     */
    public static Entry enter(Connection connection, String id, PoolLog.Place seen) throws SQLException {
        try (PreparedStatement enter = connection.prepareStatement("select pg_advisory_xact_lock(" + LOCK
            + "); select epoch from broker where id = ?; " + PoolLog.SINCE)) {
            enter.setString(1, id);
            enter.setLong(2, seen.revision());
            enter.execute();
            enter.getMoreResults();
            OptionalLong epoch;
            try (ResultSet row = enter.getResultSet()) {
                epoch = row.next() ? OptionalLong.of(row.getLong(1)) : OptionalLong.empty();
            }
            enter.getMoreResults();
            try (ResultSet rows = enter.getResultSet()) {
                return new Entry(epoch, PoolLog.news(connection, rows, seen));
            }
        }
    }

    /**
     * Lets the transaction's commit return before it is on the disk: a broker writes the same again in two seconds. A
     * later commit that waits for the disk waits for this one too.
     */
    public static void relax(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(RELAX);
        }
    }

    /**
     * Registers a broker's start: increments the epoch of its row, or makes the row. Under the lock.
     *
     * @param me the new number and epoch are taken from the database.
     * @return the broker with its number and epoch.
     * @throws SQLException when another broker has the name; the message says so.
     */
    public static PeerBroker register(Connection connection, PeerBroker me) throws SQLException {
        int number = 1;
        long epoch = Math.max(1, me.epoch() + 1);
        boolean isKnown = false;
        for (PeerBroker one : all(connection)) {
            if (one.id().equals(me.id())) {
                isKnown = true;
                number = one.number();
                epoch = Math.max(epoch, one.epoch() + 1);
                break;
            }
            if (one.name().equals(me.name())) {
                throw new SQLException("a broker's name must be its own in the pool: hawser.broker.name=" + me.name()
                    + " silentMs=" + one.silence().toMillis() + " (hawserctl brokers remove " + me.name()
                    + " removes a broker that is lost)");
            }
            number = Math.max(number, one.number() + 1);
        }
        PeerBroker registered = new PeerBroker(me.id(), number, me.name(), epoch, Instant.EPOCH, Duration.ZERO, 0,
            me.guest(), me.guestTls(), me.http(), me.version(), me.gpus());
        try (PreparedStatement write = connection.prepareStatement(isKnown
            ? "update broker set number = ?, name = ?, epoch = ?, applied = ?, " + KEEP_ADDRESSES
                + "version = ?, gpus = ?, heartbeat = clock_timestamp() where id = ?"
            : "insert into broker (number, name, epoch, applied, guest, guest_tls, http, version, gpus, id, heartbeat) "
                + "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, clock_timestamp())")) {
            write.setInt(1, registered.number());
            write.setString(2, registered.name());
            write.setLong(3, registered.epoch());
            write.setLong(4, registered.applied());
            write.setString(5, registered.guest());
            write.setString(6, registered.guestTls());
            write.setString(7, registered.http());
            write.setString(8, registered.version());
            write.setString(9, json(registered.gpus()));
            write.setString(10, registered.id());
            write.executeUpdate();
        }
        ArrivalStore.clear(connection, registered.id());
        return registered;
    }

    /**
     * Writes a broker's heartbeat and what it publishes.
     *
     * @return whether the row has the broker's epoch; otherwise nothing is written.
     */
    public static boolean beat(Connection connection, PeerBroker me) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement("update broker set heartbeat = clock_timestamp(), "
            + "applied = ?, guest = ?, guest_tls = ?, http = ?, gpus = ? where id = ? and epoch = ?")) {
            update.setLong(1, me.applied());
            update.setString(2, me.guest());
            update.setString(3, me.guestTls());
            update.setString(4, me.http());
            update.setString(5, json(me.gpus()));
            update.setString(6, me.id());
            update.setLong(7, me.epoch());
            return update.executeUpdate() == 1;
        }
    }

    /** Publishes what a broker shows of itself; does nothing at another epoch. */
    public static void show(Connection connection, String id, long epoch, String picture) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement(
            "update broker set picture = ? where id = ? and epoch = ?")) {
            update.setString(1, picture);
            update.setString(2, id);
            update.setLong(3, epoch);
            update.executeUpdate();
        }
    }

    /** Shows of all brokers but one, by the brokers' ids. */
    public static Map<String, String> shown(Connection connection, String except) throws SQLException {
        Map<String, String> shown = new LinkedHashMap<>();
        try (PreparedStatement select = connection.prepareStatement("select id, picture from broker where id <> ?")) {
            select.setString(1, except);
            try (ResultSet rows = select.executeQuery()) {
                while (rows.next()) {
                    shown.put(rows.getString("id"), rows.getString("picture"));
                }
            }
        }
        return shown;
    }

    /**
     * Publishes the revision up to which a broker has applied the log, in a relaxed transaction; does nothing at
     * another epoch.
     */
    public static void applied(Connection connection, String id, long epoch, long revision) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement(
            RELAX + "; update broker set applied = ? where id = ? and epoch = ?")) {
            update.setLong(1, revision);
            update.setString(2, id);
            update.setLong(3, epoch);
            update.execute();
        }
    }

    /** The revision that all brokers have applied that are not silent. */
    public static long applied(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery(
            "select coalesce(min(applied), 0) from broker where heartbeat > clock_timestamp() - interval '"
                + PeerBroker.MAX_SILENCE.toSeconds() + " seconds'")) {
            row.next();
            return row.getLong(1);
        }
    }

    /** The epoch of a broker's row; empty without a row. */
    public static OptionalLong epoch(Connection connection, String id) throws SQLException {
        return number(connection, "select epoch from broker where id = ?", id);
    }

    private static OptionalLong number(Connection connection, String query, String id) throws SQLException {
        try (PreparedStatement select = connection.prepareStatement(query)) {
            select.setString(1, id);
            try (ResultSet row = select.executeQuery()) {
                return row.next() ? OptionalLong.of(row.getLong(1)) : OptionalLong.empty();
            }
        }
    }

    /** All brokers, by number. */
    public static List<PeerBroker> all(Connection connection) throws SQLException {
        List<PeerBroker> all = new ArrayList<>();
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(
            "select id, number, name, epoch, heartbeat, applied, guest, guest_tls, http, version, gpus, " + SILENCE_MS
                + " from broker order by number")) {
            while (rows.next()) {
                all.add(new PeerBroker(rows.getString("id"), rows.getInt("number"), rows.getString("name"),
                    rows.getLong("epoch"), VgpuStore.time(rows, "heartbeat"),
                    Duration.ofMillis(rows.getLong("silence_ms")), rows.getLong("applied"), rows.getString("guest"),
                    rows.getString("guest_tls"), rows.getString("http"),
                    rows.getString("version"), gpus(rows.getString("gpus"))));
            }
        }
        return all;
    }

    /** Deletes a broker's row. Under the lock, after its vGPUs have no broker any more. */
    public static void delete(Connection connection, String id) throws SQLException {
        try (PreparedStatement delete = connection.prepareStatement("delete from broker where id = ?")) {
            delete.setString(1, id);
            delete.executeUpdate();
        }
    }

    /** Asks a broker to execute an act; it is notified at the commit. */
    public static void ask(Connection connection, String id, String broker, String request) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement(
            "insert into act (id, broker, asked, request) values (?, ?, clock_timestamp(), ?)")) {
            insert.setString(1, id);
            insert.setString(2, broker);
            insert.setString(3, request);
            insert.executeUpdate();
        }
        try (Statement statement = connection.createStatement()) {
            // Also what askers have left that ended before they had their answers.
            statement.execute("delete from act where asked < clock_timestamp() - interval '" + 2 * LONG_ACT_SECONDS
                + " seconds'");
            statement.execute("select pg_notify('" + CHANNEL + "', '')");
        }
    }

    /** Whether a broker has an act to begin. */
    public static boolean isAsked(Connection connection, String broker) throws SQLException {
        return number(connection, "select count(*) from act where broker = ? and not begun", broker).orElse(0) > 0;
    }

    /** Notes that a broker begins its acts, and returns the requests by id; not those whose asker waits no more. */
    public static Map<String, String> begin(Connection connection, String broker) throws SQLException {
        Map<String, String> begun = new LinkedHashMap<>();
        try (PreparedStatement update = connection.prepareStatement("update act set begun = true where broker = ? and "
            + "not begun and asked > clock_timestamp() - interval '" + ACT_SECONDS + " seconds' "
            + "returning id, request")) {
            update.setString(1, broker);
            try (ResultSet rows = update.executeQuery()) {
                while (rows.next()) {
                    begun.put(rows.getString("id"), rows.getString("request"));
                }
            }
        }
        return begun;
    }

    /** Answers an act; does nothing when its asker has given up. */
    public static void reply(Connection connection, String id, String answer) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement("update act set answer = ? where id = ?")) {
            update.setString(1, answer);
            update.setString(2, id);
            update.executeUpdate();
        }
    }

    /** The answer to an act; null before there is one. */
    public static String answer(Connection connection, String id) throws SQLException {
        try (PreparedStatement select = connection.prepareStatement("select answer from act where id = ?")) {
            select.setString(1, id);
            try (ResultSet row = select.executeQuery()) {
                return row.next() ? row.getString(1) : null;
            }
        }
    }

    /** Deletes an act, after its answer or the asker's patience. */
    public static void forget(Connection connection, String id) throws SQLException {
        try (PreparedStatement delete = connection.prepareStatement("delete from act where id = ?")) {
            delete.setString(1, id);
            delete.executeUpdate();
        }
    }

    private static String json(List<PeerGpu> gpus) {
        try {
            return JSON.writeValueAsString(gpus);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    private static List<PeerGpu> gpus(String text) throws SQLException {
        try {
            // A newer broker may publish more.
            return JSON.readerFor(GPUS).without(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES).readValue(text);
        } catch (JsonProcessingException e) {
            throw new SQLException("a broker's GPUs in the database must be a list in JSON: " + e.getMessage(), e);
        }
    }
}
