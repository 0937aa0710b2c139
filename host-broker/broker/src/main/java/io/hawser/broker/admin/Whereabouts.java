package io.hawser.broker.admin;

import io.hawser.broker.model.VgpuException;
import java.sql.SQLException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Addresses of the brokers that have the other vGPUs of a pool. A broker learns a moment late that it has received a
 * vGPU, and would send on a guest that comes from a broker which knows already. So it reads the pool's changes before
 * it sends a guest away. Event loop only.
 */
public final class Whereabouts {
    /** After this time the tables count as they are: the database may be away, and a guest waits no longer. */
    private static final long MAX_READ_MS = 2000;

    private final Executor loop;
    private final Acts acts;
    private final BrokerPool pool;
    private final AtomicReference<CompletableFuture<Void>> next = new AtomicReference<>(); // begins later than now

    Whereabouts(Executor loop, Acts acts, BrokerPool pool) {
        this.loop = loop;
        this.acts = acts;
        this.pool = pool;
    }

    /**
     * The address of the other broker that has a vGPU, by a read of the database that begins after this call.
     *
     * @return completes on the event loop; null when this broker has it, or nobody who answers.
     */
    public CompletionStage<String> of(String vgpu, boolean overTls) {
        return pool.notMine(vgpu).isEmpty() ? CompletableFuture.completedFuture(null) : afterMove(vgpu, overTls);
    }

    /** As {@link #of}, for a vGPU that may have moved just now, so that the tables do not say it yet. */
    public CompletionStage<String> afterMove(String vgpu, boolean overTls) {
        return read().copy().orTimeout(MAX_READ_MS, TimeUnit.MILLISECONDS)
            .handleAsync((done, failure) -> pool.addressOf(vgpu, overTls), loop);
    }

    /** All guests that come before a read begins share it. */
    private CompletableFuture<Void> read() {
        CompletableFuture<Void> waiting = next.get();
        if (waiting != null) {
            return waiting;
        }
        CompletableFuture<Void> read = new CompletableFuture<>();
        next.set(read);
        acts.<Void>submit(() -> {
            next.set(null);
            try {
                pool.follow();
            } catch (SQLException e) {
                throw new VgpuException(VgpuException.Kind.UNAVAILABLE, e.getMessage());
            }
            return null;
        }).whenComplete((done, failure) -> {
            next.compareAndSet(read, null); // where the act was refused and has not run
            if (failure == null) {
                read.complete(null);
            } else {
                read.completeExceptionally(failure);
            }
        });
        return read;
    }
}
