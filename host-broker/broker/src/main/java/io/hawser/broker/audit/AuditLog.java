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
 * thread of its own writes, several entries in one transaction; what does not fit into its queue, because the database
 * stands still, is in the log category alone, with a remark. Acts are never limited. Refused acts, logins and requests
 * without an identity are limited by identity, and each kind has its own room in the database: no flood of them
 * displaces an act. Thread-safe.
 */
public final class AuditLog implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(AuditLog.class);
    private static final Logger LINES = Logger.getLogger("hawser.audit");
    private static final int QUEUE_ENTRIES = 1024;
    private static final int BATCH_ENTRIES = 128;
    /** Of the queue, for entries that are no acts. */
    private static final int MAX_OTHERS_QUEUED = QUEUE_ENTRIES / 2;
    private static final int PRUNE_EVERY = 256;
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);
    /** Who reads does not wait for longer: the database stands still, or the broker ends. */
    private static final long READ_MS = 5000;

    private final Database database;
    private final long maxEntries;
    private final Duration closeLimit;
    private final BlockingQueue<AuditEntry> queue = new ArrayBlockingQueue<>(QUEUE_ENTRIES);
    private final AuditLimits limits;
    private final Object progress = new Object();
    private final Thread writer;
    private long added; // to the queue; this and the next: guarded by progress
    private long settled; // of those that were queued: written, or given up
    private volatile boolean closing;
    private int sincePruned = PRUNE_EVERY;

    /**
     * Starts the writer.
     *
     * @param maxEntries acts that are kept, and a quarter of that of each other kind; the oldest go.
     */
    public AuditLog(Database database, long maxEntries) {
        this(database, maxEntries, CLOSE_LIMIT, System::nanoTime);
    }

    /** The same that has other time to write when it is closed, and limits by another clock. */
    AuditLog(Database database, long maxEntries, Duration closeLimit, LongSupplier nowNs) {
        this.database = database;
        limits = new AuditLimits(nowNs);
        this.maxEntries = maxEntries;
        this.closeLimit = closeLimit;
        writer = Thread.ofPlatform().name("hawser-audit").daemon().start(this::write);
    }

    /** Adds an entry; its number is given when it is written. */
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
        synchronized (progress) { // counted before it can be settled
            queued = (AuditKind.of(entry) == AuditKind.ACT || queue.size() < MAX_OTHERS_QUEUED) && queue.offer(entry);
            added += queued ? 1 : 0;
        }
        LINES.infof("%s by %s (%s) from %s: %s %s%s%s", entry.outcome(), entry.name().isEmpty() ? "?" : entry.name(),
            entry.role().isEmpty() ? "no identity" : entry.role(), entry.peer(), entry.action(), entry.target(),
            entry.detail().isEmpty() ? "" : ": " + entry.detail(), queued ? "" : " (NOT in the database: it stands "
                + "still)");
    }

    private static String cut(String text, int maxCharacters) {
        return Printable.text(text, maxCharacters);
    }

    /**
     * The newest entries, what was added before this call among them: who has done something and looks is to find it.
     * Waits for the database.
     *
     * @param before a number that is not shown, nor what came after it.
     */
    public List<AuditEntry> newest(int limit, long before) throws SQLException {
        awaitWritten();
        return database.read(connection -> AuditStore.newest(connection, limit, before));
    }

    /** Waits, for a bounded time, until nothing that was added before is still on its way. */
    private void awaitWritten() {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(READ_MS);
        synchronized (progress) {
            long wanted = added;
            try {
                while (settled < wanted && System.nanoTime() - end < 0) {
                    TimeUnit.NANOSECONDS.timedWait(progress, end - System.nanoTime());
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // what there is, then
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
                LOG.errorf("entries of the audit log could not be written, they are in the log alone: entries=%d: %s",
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

    /** Writes what is there still, in bounded time; before the database is closed. */
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
