package io.hawser.broker.audit;

import io.hawser.broker.model.Printable;
import io.hawser.broker.store.Database;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jboss.logging.Logger;

/**
 * Writes administrative acts to the database and to the log category {@code hawser.audit}. {@link #add} never waits: a
 * separate thread writes several entries in one transaction. When the database hangs and the queue is full, an entry
 * appears only in the log category, with a remark. Acts are never limited. Refused acts, logins and requests without an
 * identity are limited by identity. Each kind has its own room in the database, so that a flood of one kind displaces
 * no act. Thread-safe.
 */
public final class AuditLog implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(AuditLog.class);
    private static final Logger LINES = Logger.getLogger("hawser.audit");
    private static final int QUEUE_ENTRIES = 1024;
    private static final int BATCH_ENTRIES = 128;
    /** Part of the queue for entries that are not acts. */
    private static final int MAX_OTHERS_QUEUED = QUEUE_ENTRIES / 2;
    private static final int PRUNE_EVERY = 256;
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);
    /** Longest wait of a reader: the database hangs, or the broker ends. */
    private static final long READ_MS = 5000;

    private final Database database;
    private final long maxEntries;
    private final Duration closeLimit;
    private final BlockingQueue<AuditEntry> queue = new ArrayBlockingQueue<>(QUEUE_ENTRIES);
    private final AuditLimits limits;
    private final Object progress = new Object();
    private final Thread writer;
    private long added; // entries of the queue; this and the next: guarded by progress
    private long settled; // queued entries that were written or given up
    private volatile boolean closing;
    private int sincePruned = PRUNE_EVERY;

    /**
     * Starts the writer.
     *
     * @param maxEntries number of acts to keep, and a quarter of it for each other kind; the oldest are deleted.
     */
    public AuditLog(Database database, long maxEntries) {
        this(database, maxEntries, CLOSE_LIMIT, System::nanoTime);
    }

    /** For tests: with another time limit for {@link #close} and another clock for the limits. */
    AuditLog(Database database, long maxEntries, Duration closeLimit, LongSupplier nowNs) {
        this.database = database;
        limits = new AuditLimits(nowNs);
        this.maxEntries = maxEntries;
        this.closeLimit = closeLimit;
        writer = Thread.ofPlatform().name("hawser-audit").daemon().start(this::write);
    }

    /** Adds an entry; it receives its number when it is written. */
    public void add(AuditEntry given) {
        AuditEntry entry = new AuditEntry(0, given.time(), cut(given.name(), AuditEntry.MAX_NAME_CHARACTERS),
            given.role(), given.peer(), cut(given.action(), AuditEntry.MAX_TARGET_CHARACTERS),
            cut(given.target(), AuditEntry.MAX_TARGET_CHARACTERS), given.outcome(),
            cut(given.detail(), AuditEntry.MAX_DETAIL_CHARACTERS));
        if (AuditKind.of(entry) == AuditKind.ACT) {
            enqueue(entry);
        } else {
            limits.take(entry).ifPresent(this::enqueue);
        }
    }

    private void enqueue(AuditEntry entry) {
        boolean queued;
        synchronized (progress) { // counted before the writer can settle it
            queued = (AuditKind.of(entry) == AuditKind.ACT || queue.size() < MAX_OTHERS_QUEUED) && queue.offer(entry);
            added += queued ? 1 : 0;
        }
        LINES.infof("%s by %s (%s) from %s: %s %s%s%s", entry.outcome(), entry.name().isEmpty() ? "?" : entry.name(),
            entry.role().isEmpty() ? "no identity" : entry.role(), entry.peer(), entry.action(), entry.target(),
            entry.detail().isEmpty() ? "" : ": " + entry.detail(), queued ? "" : " (NOT in the database, which "
                + "hangs)");
    }

    private static String cut(String text, int maxCharacters) {
        return Printable.text(text, maxCharacters);
    }

    /**
     * The newest entries, including all that were added before this call: operators must find their own acts. Waits for
     * the database.
     *
     * @param before only entries with a lower number.
     */
    public List<AuditEntry> newest(int limit, long before) throws SQLException {
        awaitWritten();
        return database.read(connection -> AuditStore.newest(connection, limit, before));
    }

    /** Waits, for a bounded time, until the entries that were added before this call are settled. */
    private void awaitWritten() {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(READ_MS);
        synchronized (progress) {
            long wanted = added;
            try {
                while (settled < wanted && System.nanoTime() - end < 0) {
                    TimeUnit.NANOSECONDS.timedWait(progress, end - System.nanoTime());
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // read the entries written so far
            }
        }
    }

    private void write() {
        List<AuditEntry> batch = new ArrayList<>();
        boolean last = false;
        while (!last || !queue.isEmpty()) {
            last = closing;
            limits.takeSummaries(last).forEach(this::enqueue);
            try {
                AuditEntry first = queue.poll(100, TimeUnit.MILLISECONDS);
                if (first == null) {
                    continue;
                }
                batch.add(first);
                queue.drainTo(batch, BATCH_ENTRIES - 1);
                database.transact(connection -> {
                    AuditStore.append(connection, batch);
                    return null;
                });
                prune(batch.size());
            } catch (SQLException e) {
                LOG.errorf("entries of the audit log could not be written and are only in the log: entries=%d: %s",
                    batch.size(), e.getMessage());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
            synchronized (progress) {
                settled += batch.size();
                progress.notifyAll();
            }
            batch.clear();
        }
    }

    private void prune(int written) throws SQLException {
        sincePruned += written;
        if (sincePruned >= PRUNE_EVERY) {
            sincePruned = 0;
            database.transact(connection -> {
                for (AuditKind kind : AuditKind.values()) {
                    AuditStore.prune(connection, kind, kind.room(maxEntries));
                }
                return null;
            });
        }
    }

    /** Writes the remaining entries, in bounded time. Call it before closing the database. */
    @Override
    public void close() {
        closing = true;
        try {
            writer.join(closeLimit);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        writer.interrupt();
    }
}
