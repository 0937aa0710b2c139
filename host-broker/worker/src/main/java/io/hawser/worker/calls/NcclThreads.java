package io.hawser.worker.calls;

import io.hawser.cuda.generated.nccl.ncclResult_t;
import io.hawser.worker.session.Call;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;

/** The threads that wait for other ranks in place of the session's thread. Thread-safe. */
final class NcclThreads implements Executor {
    /** Threads of a guest that wait in NCCL at once; stops a guest that takes all threads of its worker. */
    static final int MAX_THREADS = 256;
    private static final long IDLE_S = 10;

    private final ThreadPoolExecutor pool = new ThreadPoolExecutor(0, MAX_THREADS, IDLE_S, TimeUnit.SECONDS,
        new SynchronousQueue<>(), Thread.ofPlatform().daemon().name("nccl-", 0).factory());

    /** @throws RejectedExecutionException when too many tasks wait, or after {@link #close}. */
    @Override
    public void execute(Runnable task) {
        pool.execute(task);
    }

    /** Runs a step of a deferred call, and ends the call with its result. */
    void run(Call call, IntSupplier step) {
        try {
            pool.execute(() -> call.finish(step.getAsInt()));
        } catch (RejectedExecutionException e) {
            call.finish(ncclResult_t.ncclSystemError);
        }
    }

    /** Starts no further tasks. */
    void close() {
        pool.shutdown();
    }
}
