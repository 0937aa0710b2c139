package io.hawser.broker.admin;

import io.hawser.broker.model.VgpuException;
import io.hawser.broker.store.Database;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.VgpuTable;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * The thread that does administrative acts, one after the other: it looks at the rules on the event loop, writes to the
 * database, and applies on the event loop, which so never waits for the database, and between whose two visits no
 * other act comes. Thread-safe.
 */
public final class Acts implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Acts.class);
    private static final int MAX_WAITING = 1024; // requests; those beyond are told to come again
    private static final Duration STOP_LIMIT = Duration.ofSeconds(5);

    private final Executor loop;
    private final Database database;
    private final Callable<Reconciliation.Answered> answered;
    private final ThreadPoolExecutor thread = new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS,
        new ArrayBlockingQueue<>(MAX_WAITING), task -> {
            Thread made = new Thread(task, "hawser-acts");
            made.setDaemon(true);
            return made;
        });
    private boolean uncertain; // a change has failed, and may be in the database all the same; acts' thread only

    /** An act, or what it does on the event loop. */
    @FunctionalInterface
    public interface Act<T> {
        /** Does it. */
        T run() throws VgpuException;
    }

    /** Makes the thread, which begins with the first act; these tables are what the database is to have. */
    public Acts(Executor loop, Database database, VgpuTable vgpus, TokenTable tokens) {
        this.loop = loop;
        this.database = database;
        answered = () -> Reconciliation.Answered.of(vgpus, tokens);
    }

    /**
     * Does an act when those before it are done. Any thread.
     *
     * @return completes exceptionally with {@link VgpuException} when it could not be done.
     */
    public <T> CompletableFuture<T> submit(Act<T> act) {
        CompletableFuture<T> result = new CompletableFuture<>();
        try {
            thread.execute(() -> {
                try {
                    result.complete(act.run());
                } catch (VgpuException | RuntimeException e) {
                    result.completeExceptionally(e);
                }
            });
        } catch (RejectedExecutionException e) {
            result.completeExceptionally(new VgpuException(VgpuException.Kind.UNAVAILABLE, thread.isShutdown()
                ? "the broker is shutting down" : "too many changes wait to be made: max=" + MAX_WAITING));
        }
        return result;
    }

    /** Does something on the event loop, and waits for it; not from there. */
    public <T> T onLoop(Callable<T> work) throws VgpuException {
        CompletableFuture<T> done = new CompletableFuture<>();
        loop.execute(() -> {
            try {
                done.complete(work.call());
            } catch (Exception e) {
                done.completeExceptionally(e);
            }
        });
        try {
            return done.get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof VgpuException known) {
                throw known;
            }
            throw new IllegalStateException(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new VgpuException(VgpuException.Kind.UNAVAILABLE, "the broker is shutting down");
        }
    }

    /** Writes, wholly or not at all. Acts' thread only. */
    public <T> T write(Database.Work<T> work) throws VgpuException {
        Reconciliation.Answered wanted = uncertain ? onLoop(answered) : null;
        try {
            if (wanted != null) {
                database.transact(connection -> {
                    Reconciliation.apply(connection, wanted);
                    return null;
                });
                uncertain = false;
            }
            return database.transact(work);
        } catch (SQLException e) {
            uncertain = true;
            LOG.errorf("the database has not taken a change: %s", e.getMessage());
            String why = database.refused();
            throw new VgpuException(VgpuException.Kind.UNAVAILABLE, "the database has not taken the change"
                + (why.isEmpty() ? "; the broker's log says why" : ": " + why));
        }
    }

    /** Ends when the acts that were submitted are done, or after some seconds. */
    @Override
    public void close() {
        thread.shutdown();
        try {
            if (!thread.awaitTermination(STOP_LIMIT.toSeconds(), TimeUnit.SECONDS)) {
                LOG.errorf("changes that were being made are given up: waiting=%d", thread.shutdownNow().size());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
