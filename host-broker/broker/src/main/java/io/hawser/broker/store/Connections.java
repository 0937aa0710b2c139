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
 * The pool of connections. H2 closes its file for good at the first failed write, for example on a full disk. The pool
 * does not notice, because such connections still report themselves as valid. Therefore the next user reopens the file
 * with a new pool. While changes keep failing, further changes wait for a delay. PostgreSQL's connections recover
 * within the pool. Thread-safe, and blocking.
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
    /** Read lock: uses the pool. Write lock: replaces the pool while nothing uses it. */
    private final ReadWriteLock use = new ReentrantReadWriteLock();
    private final BackOff openings = new BackOff(FIRST_WAIT, MAX_WAIT, System::nanoTime);
    private final BackOff changes = new BackOff(FIRST_WAIT, MAX_WAIT, System::nanoTime);
    private AgroalDataSource source;
    private volatile String closed = ""; // why H2 has closed its file; empty while it is open
    private volatile String refusal = "";

    /** Opens the first pool. */
    Connections(AgroalDataSourceConfiguration configuration, boolean file) throws SQLException {
        this.configuration = configuration;
        this.file = file;
        source = AgroalDataSource.from(configuration);
    }

    /** For migrations, before all other users. */
    AgroalDataSource source() {
        return source;
    }

    /** Why the last change of H2's file failed; empty when it succeeded. */
    String refusal() {
        return refusal;
    }

    /** Runs a read; repeats it when another thread's change closed the file meanwhile. */
    <T> T read(Database.Work<T> work) throws SQLException {
        for (int tries = 1;; tries++) {
            try {
                return with(work, false);
            } catch (ClosedException e) {
                if (tries == MAX_READS) {
                    throw e;
                }
            }
        }
    }

    /** Runs a change; fails at once during the delay after repeated failures. */
    <T> T change(Database.Work<T> work) throws SQLException {
        long waitMs = changes.waitMs();
        if (waitMs > 0) {
            throw retryLater(refusal, waitMs);
        }
        T result = with(work, true);
        changes.recordSuccess();
        if (!refusal.isEmpty()) {
            LOG.infof("the database accepts changes again, after: %s", refusal);
            refusal = "";
        }
        return result;
    }

    private <T> T with(Database.Work<T> work, boolean change) throws SQLException {
        if (!closed.isEmpty()) {
            reopen();
        }
        use.readLock().lock();
        try (Connection connection = source.getConnection()) {
            try {
                return work.with(connection);
            } catch (SQLException | RuntimeException e) {
                if (!file || answers(connection)) {
                    throw e;
                }
                recordClosed(e, change);
                throw new ClosedException(e);
            }
        } finally {
            use.readLock().unlock();
        }
    }

    /**
     * Records that H2 has closed its file. The caller still holds the lock that keeps other threads from reopening it.
     */
    private synchronized void recordClosed(Exception failure, boolean change) {
        Optional<String> cause = systemError(failure);
        if (closed.isEmpty() || cause.isPresent()) {
            closed = cause.orElse(failure.getMessage()); // later failures only report the closed file
        }
        if (change) {
            if (refusal.isEmpty()) {
                LOG.errorf("a change of the database failed and H2 closed its file, which the broker reopens: %s",
                    closed);
            }
            refusal = refusal.isEmpty() || cause.isPresent() ? closed : refusal;
            changes.recordFailure();
        }
    }

    private void reopen() throws SQLException {
        use.writeLock().lock();
        try {
            if (closed.isEmpty()) {
                return; // another thread has reopened it
            }
            long waitMs = openings.waitMs();
            if (waitMs > 0) {
                throw retryLater(closed, waitMs);
            }
            openings.recordFailure(); // reset below after a success
            // Close the old pool first: H2 removes a database by its name, so a later close of an old connection would
            // close the new database too.
            source.close();
            source = AgroalDataSource.from(configuration);
            try (Connection connection = source.getConnection()) {
                ask(connection);
            }
            openings.recordSuccess();
            closed = "";
        } finally {
            use.writeLock().unlock();
        }
    }

    /** Runs a statement that shuts H2's database down, and reopens the file. */
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

    private static SQLException retryLater(String reason, long waitMs) {
        return new SQLException("H2 has closed the database's file (" + reason + "); the next attempt is in " + waitMs
            + " ms", CLOSED_STATE, CLOSED);
    }

    /** Whether a query succeeds. {@link Connection#isValid} is true even when the connection's database is closed. */
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

    /** The operating system's message without H2's wrapping. */
    private static Optional<String> systemError(Throwable failure) {
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
