package io.hawser.broker.admin;

import io.hawser.broker.store.Database;
import io.hawser.broker.store.PeerStore;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/** Waits for other brokers. One thread asks the database for all waits, and only while there are any. Thread-safe. */
final class AppliedWaits {
    private static final Logger LOG = Logger.getLogger(AppliedWaits.class);
    private static final long LIMIT_NS = TimeUnit.SECONDS.toNanos(2);
    private static final long LOOK_MS = 20;

    private final Database database;
    private final List<Wait> waits = new ArrayList<>();
    private boolean isLooking;

    private record Wait(long revision, long deadlineNs, CompletableFuture<Void> done) {}

    AppliedWaits(Database database) {
        this.database = database;
    }

    /** Completes when all brokers that are not silent have applied a revision, or after 2 s. */
    synchronized CompletableFuture<Void> await(long revision) {
        Wait wait = new Wait(revision, System.nanoTime() + LIMIT_NS, new CompletableFuture<>());
        waits.add(wait);
        if (!isLooking) {
            isLooking = true;
            Thread.ofVirtual().name("hawser-pool-wait").start(this::look);
        }
        return wait.done;
    }

    private void look() {
        try {
            while (true) {
                take(database.read(PeerStore::applied)).forEach(wait -> wait.done.complete(null));
                synchronized (this) {
                    if (waits.isEmpty()) {
                        isLooking = false;
                        return;
                    }
                }
                TimeUnit.MILLISECONDS.sleep(LOOK_MS);
            }
        } catch (SQLException | RuntimeException e) {
            LOG.debugf("the brokers' progress could not be read: %s", e.getMessage()); // the acts themselves are done
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        List<Wait> rest;
        synchronized (this) {
            isLooking = false;
            rest = take(Long.MAX_VALUE);
        }
        rest.forEach(wait -> wait.done.complete(null));
    }

    /** Removes the waits that end with this revision, or now. */
    private synchronized List<Wait> take(long applied) {
        List<Wait> ended = new ArrayList<>();
        long nowNs = System.nanoTime();
        for (Iterator<Wait> all = waits.iterator(); all.hasNext();) {
            Wait wait = all.next();
            if (wait.revision <= applied || nowNs - wait.deadlineNs > 0) {
                all.remove();
                ended.add(wait);
            }
        }
        return ended;
    }
}
