package io.hawser.broker.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/**
 * The vGPUs on their way to another broker of the pool, in PostgreSQL. Whoever deletes a row decides the move: the old
 * broker, which gives the vGPU away in the same transaction, or the new one, which gives up. Each method runs in its
 * caller's transaction.
 */
public final class ArrivalStore {
    private ArrivalStore() {
    }

    /** Inserts a row of the broker that will receive a vGPU. */
    public static void insert(Connection connection, String id, String broker) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("insert into arrival (id, broker) values (?, ?)")) {
            insert.setString(1, id);
            insert.setString(2, broker);
            insert.executeUpdate();
        }
    }

    /**
     * Deletes a row.
     *
     * @return whether it was there.
     */
    public static boolean delete(Connection connection, String id) throws SQLException {
        try (PreparedStatement delete = connection.prepareStatement("delete from arrival where id = ?")) {
            delete.setString(1, id);
            return delete.executeUpdate() == 1;
        }
    }

    /** Deletes the rows that an earlier process of a broker has left. */
    public static void clear(Connection connection, String broker) throws SQLException {
        try (PreparedStatement delete = connection.prepareStatement("delete from arrival where broker = ?")) {
            delete.setString(1, broker);
            delete.executeUpdate();
        }
    }
}
