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
 * Asks the database whether it answers, and after a change that it has not taken whether it takes one now; at most one
 * question at a time: a database that hangs holds one thread, however often health is asked for. Thread-safe.
 */
public final class DatabaseProbe {
    private static final Logger LOG = Logger.getLogger(DatabaseProbe.class);
    private static final Duration LIMIT = Duration.ofSeconds(2);

    private final Database database;
    private final Duration limit;
    private CompletableFuture<String> asked;
    private long askedNs;

    /** Asks this database. */
    public DatabaseProbe(Database database) {
        this(database, LIMIT);
    }

    /** The same that waits for so long. */
    DatabaseProbe(Database database, Duration limit) {
        this.database = database;
        this.limit = limit;
    }

    /** Why it does not answer; empty when it does. Waits for at most two seconds; not on the event loop. */
    public String problem() {
        CompletableFuture<String> question;
        long sinceNs;
        synchronized (this) {
            if (asked == null || asked.isDone()) {
                CompletableFuture<String> next = new CompletableFuture<>();
                Thread.ofVirtual().name("hawser-database-probe").start(() -> next.complete(ask()));
                asked = next;
                askedNs = System.nanoTime();
            }
            question = asked;
            sinceNs = askedNs;
        }
        try {
            return question.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            return "the database has not answered for " + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - sinceNs)
                + " s";
        } catch (ExecutionException e) {
            throw new IllegalStateException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "interrupted while the database was asked";
        }
    }

    /** Why the last change was not taken, for people; empty when it was. Waits for nothing. */
    public String refused() {
        return database.refused();
    }

    private void tryChange() {
        try {
            database.tryChange();
        } catch (SQLException e) {
            LOG.debugf("the database takes no change: %s", e.getMessage()); // and says so when it is asked
        }
    }

    /** A question that goes as far as a table: connections call themselves valid whose database is closed. */
    private String answer(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout((int) limit.toSeconds());
            try (ResultSet row = statement.executeQuery("select count(*) from done")) {
                return row.next() ? "" : "the database does not answer";
            }
        }
    }

    private String ask() {
        try {
            if (!database.refused().isEmpty()) {
                tryChange();
            }
            return database.read(this::answer);
        } catch (SQLException | RuntimeException e) {
            return "the database does not answer: " + e.getMessage();
        }
    }
}
