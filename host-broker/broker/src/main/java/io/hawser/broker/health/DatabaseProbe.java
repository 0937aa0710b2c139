package io.hawser.broker.health;

import io.hawser.broker.store.Database;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Asks the database whether it answers, at most one question at a time: a database that hangs holds one thread, however
 * often health is asked for. Thread-safe.
 */
public final class DatabaseProbe {
    private static final Duration LIMIT = Duration.ofSeconds(2);

    private final Database database;
    private CompletableFuture<String> asked;
    private long askedNs;

    /** Asks this database. */
    public DatabaseProbe(Database database) {
        this.database = database;
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
            return question.get(LIMIT.toMillis(), TimeUnit.MILLISECONDS);
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

    private String ask() {
        try {
            return database.read(connection -> connection.isValid((int) LIMIT.toSeconds())) ? ""
                : "the database does not answer";
        } catch (SQLException | RuntimeException e) {
            return "the database does not answer: " + e.getMessage();
        }
    }
}
