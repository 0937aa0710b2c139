package io.hawser.broker.store;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Communication;
import io.hawser.broker.model.GpuChoice;
import io.hawser.broker.model.Labelled;
import io.hawser.broker.model.Labels;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Owner;
import io.hawser.broker.model.Sharing;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** vGPUs in the database. Each method runs in its caller's transaction. */
public final class VgpuStore {
    private static final String COLUMNS = "id, owner_kind, owner_id, memory_bytes, compute_share, sharing, gpus, "
        + "carriers, max_sessions, origin, created, changed, placed, communication, swappable, rdma, expires, "
        + "labels, name";

    private VgpuStore() {
    }

    /**
     * A stored vGPU.
     *
     * @param placed UUIDs of the vGPU's GPUs; empty while it has none.
     * @param broker id of its broker in a pool; empty for none.
     * @param inUse whether it may have sessions or a region at its broker.
     */
    public record Kept(Vgpu vgpu, List<String> placed, String broker, boolean inUse) {
        /** A vGPU of a broker without a pool. */
        public Kept(Vgpu vgpu, List<String> placed) {
            this(vgpu, placed, "", false);
        }
    }

    /** All vGPUs, the oldest first. */
    public static List<Kept> all(Connection connection) throws SQLException {
        List<Kept> all = new ArrayList<>();
        try (PreparedStatement select = connection.prepareStatement("select " + COLUMNS
            + ", broker, in_use from vgpu order by created, name"); ResultSet rows = select.executeQuery()) {
            while (rows.next()) {
                all.add(kept(rows));
            }
        }
        return all;
    }

    /** A vGPU by its name. */
    public static Optional<Kept> find(Connection connection, String name) throws SQLException {
        try (PreparedStatement select = connection.prepareStatement("select " + COLUMNS
            + ", broker, in_use from vgpu where name = ?")) {
            select.setString(1, name);
            try (ResultSet row = select.executeQuery()) {
                return row.next() ? Optional.of(kept(row)) : Optional.empty();
            }
        }
    }

    /** The vGPUs with these names that exist. PostgreSQL only. */
    public static List<Kept> find(Connection connection, Collection<String> names) throws SQLException {
        List<Kept> found = new ArrayList<>();
        try (PreparedStatement select = connection.prepareStatement("select " + COLUMNS
            + ", broker, in_use from vgpu where name = any(?)")) {
            select.setArray(1, connection.createArrayOf("varchar", names.toArray()));
            try (ResultSet rows = select.executeQuery()) {
                while (rows.next()) {
                    found.add(kept(rows));
                }
            }
        }
        return found;
    }

    private static Kept kept(ResultSet row) throws SQLException {
        String name = row.getString("name");
        try {
            Set<Carrier> carriers = EnumSet.noneOf(Carrier.class);
            // Skip an unknown carrier: a newer broker wrote it.
            list(row.getString("carriers")).forEach(label -> Carrier.of(label).ifPresent(carriers::add));
            return new Kept(new Vgpu(name, UUID.fromString(row.getString("id")),
                new Owner(Labelled.of(Owner.Kind.class, row.getString("owner_kind"), "owner"),
                    row.getString("owner_id")),
                row.getLong("memory_bytes"), row.getInt("compute_share"),
                Labelled.of(Sharing.class, row.getString("sharing"), "mode"), GpuChoice.parse(row.getString("gpus")),
                Set.copyOf(carriers), row.getInt("max_sessions"),
                Labelled.of(Communication.class, row.getString("communication"), "communication"),
                row.getBoolean("swappable"), row.getBoolean("rdma"),
                time(row, "expires"), Labels.parse(row.getString("labels")),
                Labelled.of(Origin.class, row.getString("origin"), "origin"),
                time(row, "created"), time(row, "changed")), list(row.getString("placed")),
                Objects.requireNonNullElse(row.getString("broker"), ""), row.getBoolean("in_use"));
        } catch (VgpuException | IllegalArgumentException e) {
            throw new SQLException("a vGPU in the database must have values that this broker knows: vgpu=" + name + ": "
                + e.getMessage(), e);
        }
    }

    /** Inserts a new vGPU without a broker. */
    public static void insert(Connection connection, Vgpu vgpu, List<String> placed) throws SQLException {
        insert(connection, vgpu, placed, "");
    }

    /** Inserts a new vGPU of a broker of the pool. An empty broker is none. */
    public static void insert(Connection connection, Vgpu vgpu, List<String> placed, String broker)
        throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("insert into vgpu (" + COLUMNS
            + ", broker) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            fill(insert, vgpu, placed);
            insert.setString(20, broker.isEmpty() ? null : broker);
            insert.executeUpdate();
        }
    }

    /** Replaces all fields of a vGPU except its name. */
    public static void update(Connection connection, Vgpu vgpu, List<String> placed) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement("update vgpu set id = ?, owner_kind = ?, "
            + "owner_id = ?, memory_bytes = ?, compute_share = ?, sharing = ?, gpus = ?, carriers = ?, "
            + "max_sessions = ?, origin = ?, created = ?, changed = ?, placed = ?, communication = ?, "
            + "swappable = ?, rdma = ?, expires = ?, labels = ? where name = ?")) {
            fill(update, vgpu, placed);
            requireOne(update.executeUpdate(), vgpu.name());
        }
    }

    /** Writes the GPUs of a vGPU. */
    public static void place(Connection connection, String name, List<String> placed) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement("update vgpu set placed = ? where name = ?")) {
            update.setString(1, String.join(",", placed));
            update.setString(2, name);
            update.executeUpdate(); // no row when it was deleted meanwhile, which needs no update
        }
    }

    /** Gives a vGPU to a broker of the pool, with these GPUs; it is then not in use. An empty broker is none. */
    public static void give(Connection connection, String name, String broker, List<String> placed)
        throws SQLException {
        try (PreparedStatement update = connection.prepareStatement(
            "update vgpu set broker = ?, placed = ?, in_use = false where name = ?")) {
            update.setString(1, broker.isEmpty() ? null : broker);
            update.setString(2, String.join(",", placed));
            update.setString(3, name);
            requireOne(update.executeUpdate(), name);
        }
    }

    /** Makes a broker of the pool that of a vGPU, at its start. */
    public static void own(Connection connection, String name, String broker) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement("update vgpu set broker = ? where name = ?")) {
            update.setString(1, broker);
            update.setString(2, name);
            requireOne(update.executeUpdate(), name);
        }
    }

    /** Marks a vGPU as in use, or as not in use. */
    public static void mark(Connection connection, String name, boolean inUse) throws SQLException {
        try (PreparedStatement update = connection.prepareStatement("update vgpu set in_use = ? where name = ?")) {
            update.setBoolean(1, inUse);
            update.setString(2, name);
            requireOne(update.executeUpdate(), name);
        }
    }

    /** Deletes a vGPU and its tokens. */
    public static void delete(Connection connection, String name) throws SQLException {
        try (PreparedStatement delete = connection.prepareStatement("delete from vgpu where name = ?")) {
            delete.setString(1, name);
            requireOne(delete.executeUpdate(), name);
        }
    }

    /**
     * Notes that a one-time step is done.
     *
     * @return whether the step was not done before.
     */
    public static boolean markDone(Connection connection, String what) throws SQLException {
        if (isDone(connection, what)) {
            return false;
        }
        try (PreparedStatement insert = connection.prepareStatement("insert into done (what) values (?)")) {
            insert.setString(1, what);
            insert.executeUpdate();
        }
        return true;
    }

    /** Whether {@link #markDone} has noted a step. */
    static boolean isDone(Connection connection, String what) throws SQLException {
        try (PreparedStatement select = connection.prepareStatement("select what from done where what = ?")) {
            select.setString(1, what);
            try (ResultSet row = select.executeQuery()) {
                return row.next();
            }
        }
    }

    /** Removes the note of {@link #markDone}. */
    static void unmarkDone(Connection connection, String what) throws SQLException {
        try (PreparedStatement delete = connection.prepareStatement("delete from done where what = ?")) {
            delete.setString(1, what);
            delete.executeUpdate();
        }
    }

    private static void fill(PreparedStatement statement, Vgpu vgpu, List<String> placed) throws SQLException {
        statement.setString(1, vgpu.id().toString());
        statement.setString(2, vgpu.owner().kind().label());
        statement.setString(3, vgpu.owner().id());
        statement.setLong(4, vgpu.memoryBytes());
        statement.setInt(5, vgpu.computeShare());
        statement.setString(6, vgpu.mode().label());
        statement.setString(7, vgpu.gpus().toString());
        statement.setString(8, vgpu.carriers().stream().map(Carrier::label).sorted().collect(Collectors.joining(",")));
        statement.setInt(9, vgpu.maxSessions());
        statement.setString(10, vgpu.origin().label());
        statement.setObject(11, at(vgpu.created()));
        statement.setObject(12, at(vgpu.changed()));
        statement.setString(13, String.join(",", placed));
        statement.setString(14, vgpu.communication().label());
        statement.setBoolean(15, vgpu.swappable());
        statement.setBoolean(16, vgpu.rdma());
        statement.setObject(17, at(vgpu.expires()));
        statement.setString(18, vgpu.labels().text());
        statement.setString(19, vgpu.name());
    }

    private static void requireOne(int rows, String name) throws SQLException {
        if (rows != 1) {
            throw new SQLException("the database must contain the vGPU once: vgpu=" + name + " rows=" + rows);
        }
    }

    private static List<String> list(String text) {
        return Stream.of(text.split(",")).filter(part -> !part.isEmpty()).toList();
    }

    static OffsetDateTime at(Instant time) {
        return time == null ? null : time.atOffset(ZoneOffset.UTC);
    }

    static Instant time(ResultSet row, String column) throws SQLException {
        OffsetDateTime time = row.getObject(column, OffsetDateTime.class);
        return time == null ? null : time.toInstant();
    }
}
