package io.hawser.broker.store;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jboss.logging.Logger;
import org.postgresql.PGConnection;

/**
 * Waits for notifications of PostgreSQL on a connection of its own, which it opens again after a loss. They only save
 * time: a reader also polls. For one thread.
 */
public final class Notifications implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Notifications.class);

    private final String url;
    private final Properties properties;
    private final String channel;
    private Connection connection; // null while it is not open

    Notifications(String url, Properties properties, String channel) {
        this.url = url;
        this.properties = properties;
        this.channel = channel;
    }

    /** Waits until a notification comes, at most this time; also when the database is away. */
    public void await(int ms) {
        try {
            if (connection == null) {
                connection = DriverManager.getConnection(url, properties);
                try (Statement statement = connection.createStatement()) {
                    statement.execute("listen " + channel);
                }
            }
            connection.unwrap(PGConnection.class).getNotifications(ms);
        } catch (SQLException e) {
            LOG.debugf("no notifications of the database: %s", e.getMessage()); // the reader's poll reports it
            closeConnection();
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(ms));
        }
    }

    private void closeConnection() {
        if (connection != null) {
            try {
                connection.close();
            } catch (SQLException e) {
                LOG.debugf("a lost connection did not close: %s", e.getMessage());
            }
            connection = null;
        }
    }

    /** Closes the connection, after the thread's last wait. */
    @Override
    public void close() {
        closeConnection();
    }
}
