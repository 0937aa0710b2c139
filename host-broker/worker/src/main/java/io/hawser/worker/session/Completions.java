package io.hawser.worker.session;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Ends of asynchronous work, brought from the backend's threads to the session thread in the order in which they were
 * reported: a copy's data is sent before the reply to a synchronise that came after it.
 */
public final class Completions {
    private final Queue<Runnable> queue = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean scheduled = new AtomicBoolean();
    private final Executor sessionThread;
    private final Runnable afterBatch;
    private final Runnable drain = this::drain;

    /**
     * Makes an empty queue.
     *
     * @param sessionThread runs the actions, one at a time, in order.
     * @param afterBatch run there after each batch, to send what the batch has produced.
     */
    public Completions(Executor sessionThread, Runnable afterBatch) {
        this.sessionThread = sessionThread;
        this.afterBatch = afterBatch;
    }

    /**
     * Appends an action. Any thread; never runs it in the caller.
     *
     * @param action what to do on the session thread.
     */
    public void add(Runnable action) {
        queue.add(action);
        if (!scheduled.get() && scheduled.compareAndSet(false, true)) {
            schedule();
        }
    }

    private void schedule() {
        try {
            sessionThread.execute(drain);
        } catch (RejectedExecutionException e) {
            // The loop has ended with its session: nobody is left to answer, and staging memory goes with the process.
            queue.clear();
        }
    }

    private void drain() {
        // Cleared first, pairs with the check in add(): an action that comes after the last poll schedules again.
        scheduled.set(false);
        for (Runnable action = queue.poll(); action != null; action = queue.poll()) {
            action.run();
        }
        afterBatch.run();
    }
}
