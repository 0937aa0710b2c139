package io.hawser.broker.admin;

import io.hawser.broker.model.VgpuException;
import io.hawser.broker.store.ClosedFileException;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.PoolLog;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.VgpuTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Set;
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
 * The thread that executes administrative acts one after the other. An act checks the rules on the event loop, writes
 * to the database on its own thread, and applies the change on the event loop. The event loop therefore never waits for
 * the database, and no other act changes the tables between the check and the change. Thread-safe.
 */
public final class Acts implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(Acts.class);
    private static final int MAX_WAITING = 1024; // requests; the broker rejects more, and clients retry
    private static final Duration STOP_LIMIT = Duration.ofSeconds(5);

    private final Executor loop;
    private final Database database;
    private final Callable<Reconciliation.Acknowledged> acknowledged;
    private final ThreadPoolExecutor thread = new ThreadPoolExecutor(1, 1, 0, TimeUnit.SECONDS,
        new ArrayBlockingQueue<>(MAX_WAITING), task -> {
            Thread created = new Thread(task, "hawser-acts");
            created.setDaemon(true);
            return created;
        });
    private boolean uncertain; // a change failed but may still be in the database; acts' thread only
    private Shared shared; // null when the broker is alone

    /** An act, or the part of an act that runs on the event loop. */
    @FunctionalInterface
    public interface Act<T> {
        /** Executes the act. */
        T run() throws VgpuException;
    }

    /** The part of a write in its transaction. */
    @FunctionalInterface
    public interface Write<T> {
        /** Checks and writes; commits nothing itself. */
        T with(Connection connection) throws SQLException, VgpuException;
    }

    /** The steps that a pool of brokers adds to each write. Acts' thread only. */
    interface Shared {
        /** Keeps other brokers from changing the pool until the transaction's end, and brings the tables up to date. */
        void enter(Connection connection) throws SQLException, VgpuException;

        /** Tells the other brokers which vGPUs and tokens the transaction changes. */
        void log(Connection connection, Set<PoolLog.Key> changed) throws SQLException;

        /** The transaction is committed. */
        void committed();

        /** The transaction may or may not be committed. */
        void uncertain();
    }

    /** A write's reason to refuse, on its way through the transaction. */
    private static final class RefusedWriteException extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final transient VgpuException reason;

        RefusedWriteException(VgpuException reason) {
            super(reason);
            this.reason = reason;
        }
    }

    /** Creates the thread, which starts with the first act; the database must hold the content of these tables. */
    public Acts(Executor loop, Database database, VgpuTable vgpus, TokenTable tokens) {
        this.loop = loop;
        this.database = database;
        acknowledged = () -> Reconciliation.Acknowledged.of(vgpus, tokens);
    }

    /**
     * Executes an act after all earlier acts. Any thread.
     *
     * @return completes exceptionally with {@link VgpuException} when the act failed.
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
                ? "the broker is shutting down" : "too many changes are waiting: max=" + MAX_WAITING));
        }
        return result;
    }

    /** Runs work on the event loop and waits for its result. Never call it on the event loop. */
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

    /** Makes this broker's acts those of a member of a pool; the call precedes the first act. */
    void share(Shared with) {
        shared = with;
    }

    /**
     * Executes a transaction. Acts' thread only.
     *
     * @param changed vGPUs and tokens that it changes.
     */
    public <T> T write(Set<PoolLog.Key> changed, Write<T> work) throws VgpuException {
        try {
            if (uncertain && shared == null) {
                Reconciliation.Acknowledged wanted = onLoop(acknowledged);
                database.transact(connection -> {
                    Reconciliation.apply(connection, wanted);
                    return null;
                });
                uncertain = false;
            }
            T result = database.transact(connection -> {
                try {
                    return transact(connection, changed, work);
                } catch (VgpuException e) {
                    throw new RefusedWriteException(e);
                }
            });
            if (shared != null) {
                shared.committed();
            }
            return result;
        } catch (RefusedWriteException e) {
            throw e.reason;
        } catch (SQLException e) {
            if (shared == null) {
                uncertain = true;
            } else {
                shared.uncertain();
            }
            LOG.errorf("the database rejected a change: %s", e.getMessage());
            // Not database.refusal(): a later change of another thread may already have cleared it.
            throw new VgpuException(VgpuException.Kind.UNAVAILABLE, "the database rejected the change"
                + (e instanceof ClosedFileException closed ? ": " + closed.reason() : "; see the broker's log"));
        }
    }

    private <T> T transact(Connection connection, Set<PoolLog.Key> changed, Write<T> work)
        throws SQLException, VgpuException {
        if (shared == null) {
            return work.with(connection);
        }
        shared.enter(connection);
        T result = work.with(connection);
        if (!changed.isEmpty()) {
            shared.log(connection, changed);
        }
        return result;
    }

    /** Waits a few seconds for the submitted acts, then discards the remaining ones. */
    @Override
    public void close() {
        thread.shutdown();
        try {
            if (!thread.awaitTermination(STOP_LIMIT.toSeconds(), TimeUnit.SECONDS)) {
                LOG.errorf("the broker discards waiting changes: waiting=%d", thread.shutdownNow().size());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
