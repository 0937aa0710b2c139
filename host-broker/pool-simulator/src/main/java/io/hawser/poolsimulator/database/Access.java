package io.hawser.poolsimulator.database;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;

/**
 * A database of PostgreSQL.
 *
 * @param password empty for none.
 */
public record Access(String url, String user, String password) {
    /** Opens a connection. */
    Connection connect() throws SQLException {
        return DriverManager.getConnection(url, user, password.isEmpty() ? null : password);
    }

    /** Settings of a broker with this database. */
    Map<String, String> settings() {
        Map<String, String> settings = new HashMap<>(Map.of("hawser.database.url", url, "hawser.database.username",
            user));
        if (!password.isEmpty()) {
            settings.put("hawser.database.password", password);
        }
        return settings;
    }

    /** A number that a query gives. */
    static long number(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getLong(1);
        }
    }

    /**
     * Checks that no pool uses the database: the simulated brokers would answer for its brokers.
     *
     * @throws SQLException when it has tables of a broker, or does not answer.
     */
    public void requireEmpty() throws SQLException {
        try (Connection connection = connect()) {
            if (number(connection, "select count(*) from information_schema.tables where table_name in ('vgpu', "
                + "'broker')") > 0) {
                throw new SQLException("the database must be empty, because a pool may use it: " + url);
            }
        }
    }
}
