package io.hawser.broker.store;

import io.agroal.api.AgroalDataSource;
import io.agroal.api.configuration.AgroalDataSourceConfiguration;
import java.io.IOException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.stream.Stream;
import org.jboss.logging.Logger;

/**
 * The pool of connections. H2 closes its file for good at the first write that fails, a full disk's above all; the
 * pool does not notice, since such connections call themselves valid. So whoever comes next opens the file anew, with
 * a pool of its own; a change only after a while when changes keep failing. PostgreSQL's connections the pool mends by
 * itself. Thread-safe, and blocking.
 */
final class Connections implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Connections.class);
    private static final Duration FIRST_WAIT = Duration.ofMillis(50);
    private static final Duration MAX_WAIT = Duration.ofSeconds(2);
    private static final int MAX_READS = 3;
    /** H2's "the database has been closed". */
    private static final int CLOSED = 90098;
    private static final String CLOSED_STATE = "90098";

    private final AgroalDataSourceConfiguration configuration;
    private final boolean file;
    /** To read: uses the pool. To write: replaces it, when nobody uses it. */
    private final ReadWriteLock use = new ReentrantReadWriteLock();
    private final BackOff openings = new BackOff(FIRST_WAIT, MAX_WAIT, System::nanoTime);
    private final BackOff changes = new BackOff(FIRST_WAIT, MAX_WAIT, System::nanoTime);
    private AgroalDataSource source;
    private volatile String closed = ""; // why H2 has closed its file; empty while it is open
    private volatile String refused = "";

    /** Opens the first pool. */
    Connections(AgroalDataSourceConfiguration configuration, boolean file) throws SQLException {
        this.configuration = configuration;
        this.file = file;
        source = AgroalDataSource.from(configuration);
    }

    /** For migrations, before anybody else comes. */
    AgroalDataSource source() {
        return source;
    }

    /** Why H2's file took no change when one was last tried; empty when it did. */
    String refused() {
        return refused;
    }

    /** Reads; again when somebody's change closes the file meanwhile. */
    <T> T read(Database.Work<T> work) throws SQLException {
        for (int tries = 1; ; tries++) {
            try {
                return with(work, false);
            } catch (ClosedException e) {
                if (tries == MAX_READS) {
                    throw e;
                }
            }
        }
    }

    /** Writes; refused at once for a while when that keeps closing the file. */
    <T> T change(Database.Work<T> work) throws SQLException {
        long waitMs = changes.waitMs();
        if (waitMs > 0) {
            throw notNow(refused, waitMs);
        }
        T result = with(work, true);
        changes.succeeded();
        if (!refused.isEmpty()) {
            LOG.infof("the database takes changes again; it did not: %s", refused);
            refused = "";
        }
        return result;
    }

    private <T> T with(Database.Work<T> work, boolean change) throws SQLException {
        if (!closed.isEmpty()) {
            openAnew();
        }
        use.readLock().lock();
        try (Connection connection = source.getConnection()) {
            try {
                return work.with(connection);
            } catch (SQLException | RuntimeException e) {
                if (!file || answers(connection)) {
                    throw e;
                }
                closed(e, change);
                throw new ClosedException(e);
            }
        } finally {
            use.readLock().unlock();
        }
    }

    /** While this thread still keeps others from opening it anew. */
    private synchronized void closed(Exception failure, boolean change) {
        Optional<String> cause = machineSays(failure);
        if (closed.isEmpty() || cause.isPresent()) {
            closed = cause.orElse(failure.getMessage()); // others merely find it closed
        }
        if (change) {
            if (refused.isEmpty()) {
                LOG.errorf("the database has not taken a change and has closed its file, which is opened anew: %s",
                    closed);
            }
            refused = refused.isEmpty() || cause.isPresent() ? closed : refused;
            changes.failed();
        }
    }

    private void openAnew() throws SQLException {
        use.writeLock().lock();
        try {
            if (closed.isEmpty()) {
                return; // another thread has
            }
            long waitMs = openings.waitMs();
            if (waitMs > 0) {
                throw notNow(closed, waitMs);
            }
            openings.failed(); // until it has not
            // First: H2 forgets a database by its name, so that a connection of the old one, closed later, would take
            // the new one with it.
            source.close();
            source = AgroalDataSource.from(configuration);
            try (Connection connection = source.getConnection()) {
                ask(connection);
            }
            openings.succeeded();
            closed = "";
        } finally {
            use.writeLock().unlock();
        }
    }

    /** Runs a statement that ends H2's database, and opens the file again. */
    void reopenAfter(String shutdown) throws SQLException {
        use.writeLock().lock();
        try {
            try (Connection connection = source.getConnection(); Statement statement = connection.createStatement()) {
                statement.execute(shutdown);
            }
            source.close();
            source = AgroalDataSource.from(configuration);
            try (Connection connection = source.getConnection()) {
                ask(connection);
            }
        } finally {
            use.writeLock().unlock();
        }
    }

    private static SQLException notNow(String reason, long waitMs) {
        return new SQLException("the database has closed its file (" + reason + "); the next attempt is in " + waitMs
            + " ms", CLOSED_STATE, CLOSED);
    }

    /** {@link Connection#isValid} is true of a connection whose database is closed. */
    private static boolean answers(Connection connection) {
        try {
            ask(connection);
            return true;
        } catch (SQLException e) {
            LOG.debugf("the database does not answer: %s", e.getMessage());
            return false;
        }
    }

    private static void ask(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
            ResultSet row = statement.executeQuery("select count(*) from done")) {
            row.next();
        }
    }

    /** What the machine says, without what H2 wraps around it. */
    private static Optional<String> machineSays(Throwable failure) {
        return Stream.iterate(failure, cause -> cause != null, Throwable::getCause)
            .filter(cause -> cause instanceof IOException && cause.getMessage() != null).map(Throwable::getMessage)
            .findFirst();
    }

    /** H2 has closed its file. */
    private static final class ClosedException extends SQLException {
        private static final long serialVersionUID = 1L;

        ClosedException(Exception cause) {
            super(cause.getMessage(), CLOSED_STATE, CLOSED, cause);
        }
    }

    @Override
    public void close() {
        source.close();
    }
}
