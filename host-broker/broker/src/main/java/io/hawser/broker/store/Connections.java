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
                return with(work);
            } catch (ClosedFileException e) {
                if (tries == MAX_READS) {
                    throw e;
                }
            }
        }
    }

    /**
     * Runs a change; fails at once during the delay after repeated failures.
     *
     * @throws ClosedFileException when H2 has closed its file, in this change or before it.
     */
    <T> T change(Database.Work<T> work) throws SQLException {
        rejectDuringDelay();
        T result;
        try {
            result = with(work);
        } catch (ClosedFileException e) {
            recordRefusal(e.reason());
            throw e;
        }
        recordAcceptance();
        return result;
    }

    private synchronized void rejectDuringDelay() throws ClosedFileException {
        long waitMs = changes.waitMs();
        if (waitMs > 0) {
            throw retryLater(refusal, waitMs);
        }
    }

    private synchronized void recordRefusal(String reason) {
        if (refusal.isEmpty()) {
            LOG.errorf("a change of the database failed because H2 closed its file, which the broker reopens: %s",
                reason);
        }
        refusal = reason;
        changes.recordFailure();
    }

    private synchronized void recordAcceptance() {
        changes.recordSuccess();
        if (!refusal.isEmpty()) {
            LOG.infof("the database accepts changes again, after: %s", refusal);
            refusal = "";
        }
    }

    private <T> T with(Database.Work<T> work) throws SQLException {
        if (!closed.isEmpty()) {
            reopen();
        }
        use.readLock().lock();
        try (Connection connection = source.getConnection()) {
            try {
                return work.with(connection);
            } catch (SQLException | RuntimeException e) {
                // H2 still answers queries while another thread closes the file after a failed write.
                if (!file || systemError(e).isEmpty() && answers(connection)) {
                    throw e;
                }
                throw new ClosedFileException(recordClosed(e), e);
            }
        } finally {
            use.readLock().unlock();
        }
    }

    /**
     * Records that H2 has closed its file. The caller still holds the lock that keeps other threads from reopening it.
     *
     * @return the reason.
     */
    private synchronized String recordClosed(Exception failure) {
        Optional<String> cause = systemError(failure);
        if (closed.isEmpty() || cause.isPresent()) {
            closed = cause.orElse(failure.getMessage()); // later failures only report the closed file
        }
        return closed;
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
            } catch (SQLException e) {
                throw new ClosedFileException(recordClosed(e), e);
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

    private static ClosedFileException retryLater(String reason, long waitMs) {
        return new ClosedFileException("H2 has closed the database's file (" + reason + "); the next attempt is in "
            + waitMs + " ms", reason, null);
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

    @Override
    public void close() {
        source.close();
    }
}
