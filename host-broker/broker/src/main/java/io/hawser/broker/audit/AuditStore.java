package io.hawser.broker.audit;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;

/** The audit log in the database. Each method is a part of its caller's transaction. */
final class AuditStore {
    private AuditStore() {
    }

    static void append(Connection connection, List<AuditEntry> entries) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("insert into audit (at, name, role, peer, action, "
            + "target, outcome, detail, kind) values (?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            for (AuditEntry entry : entries) {
                insert.setObject(1, entry.time().atOffset(ZoneOffset.UTC));
                insert.setString(2, entry.name());
                insert.setString(3, entry.role());
                insert.setString(4, entry.peer());
                insert.setString(5, entry.action());
                insert.setString(6, entry.target());
                insert.setString(7, entry.outcome());
                insert.setString(8, entry.detail());
                insert.setString(9, AuditKind.of(entry).label());
                insert.addBatch();
            }
            insert.executeBatch();
        }
    }

    /** Up to {@code limit} entries with numbers below {@code before}, the newest first. */
    static List<AuditEntry> newest(Connection connection, int limit, long before) throws SQLException {
        List<AuditEntry> found = new ArrayList<>();
        try (PreparedStatement select = connection.prepareStatement("select seq, at, name, role, peer, action, target, "
            + "outcome, detail from audit where seq < ? order by seq desc fetch first ? rows only")) {
            select.setLong(1, before);
            select.setInt(2, limit);
            try (ResultSet rows = select.executeQuery()) {
                while (rows.next()) {
                    found.add(new AuditEntry(rows.getLong(1), rows.getObject(2, OffsetDateTime.class).toInstant(),
                        rows.getString(3), rows.getString(4), rows.getString(5), rows.getString(6), rows.getString(7),
                        rows.getString(8), rows.getString(9)));
                }
            }
        }
        return found;
    }

    /** Deletes all but the newest entries of a kind. */
    static void prune(Connection connection, AuditKind kind, long keep) throws SQLException {
        try (PreparedStatement delete = connection.prepareStatement("delete from audit where kind = ? and seq <= "
            + "(select seq from audit where kind = ? order by seq desc offset ? rows fetch first 1 rows only)")) {
            delete.setString(1, kind.label());
            delete.setString(2, kind.label());
            delete.setLong(3, keep);
            delete.executeUpdate();
        }
    }
}
