package io.hawser.broker.health;

import io.hawser.broker.store.Database;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jboss.logging.Logger;

/**
 * Checks whether the database answers; after a rejected change, also whether it accepts changes again. Only one check
 * runs at a time, so a hanging database blocks one thread, however often health is requested. Thread-safe.
 */
public final class DatabaseProbe {
    private static final Logger LOG = Logger.getLogger(DatabaseProbe.class);
    private static final Duration LIMIT = Duration.ofSeconds(2);

    private final Database database;
    private final Duration limit;
    private CompletableFuture<String> check;
    private long checkedNs;

    /** Checks this database. */
    public DatabaseProbe(Database database) {
        this(database, LIMIT);
    }

    /** For tests: with another time limit. */
    DatabaseProbe(Database database, Duration limit) {
        this.database = database;
        this.limit = limit;
    }

    /** Why the database does not answer; empty when it does. Waits at most two seconds; not on the event loop. */
    public String problem() {
        CompletableFuture<String> running;
        long sinceNs;
        synchronized (this) {
            if (check == null || check.isDone()) {
                CompletableFuture<String> next = new CompletableFuture<>();
                Thread.ofVirtual().name("hawser-database-probe").start(() -> next.complete(check()));
                check = next;
                checkedNs = System.nanoTime();
            }
            running = check;
            sinceNs = checkedNs;
        }
        try {
            return running.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            return "the database has not answered for " + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - sinceNs)
                + " s";
        } catch (ExecutionException e) {
            throw new IllegalStateException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "interrupted while waiting for the database";
        }
    }

    /** Why the database rejected the last change, for people; empty when it accepted it. Never waits. */
    public String refused() {
        return database.refusal();
    }

    private void tryChange() {
        try {
            database.tryChange();
        } catch (SQLException e) {
            LOG.debugf("the database rejects changes: %s", e.getMessage()); // refused() returns the reason
        }
    }

    /** Reads a table: a connection reports itself valid even when its database is closed. */
    private String readTable(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout((int) limit.toSeconds());
            try (ResultSet row = statement.executeQuery("select count(*) from done")) {
                return row.next() ? "" : "the database does not answer";
            }
        }
    }

    private String check() {
        try {
            if (!database.refusal().isEmpty()) {
                tryChange();
            }
            return database.read(this::readTable);
        } catch (SQLException | RuntimeException e) {
            return "the database does not answer: " + e.getMessage();
        }
    }
}
