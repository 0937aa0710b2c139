package io.hawser.worker.session;

import io.hawser.worker.channel.Link;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Passes ends of asynchronous work from backend threads to the session thread, in the order of their reports. So a
 * copy's data is sent before the reply to a later synchronise. Ends that the session thread itself has found need no
 * thread switch: it runs them after its current task.
 */
public final class Completions {
    private final Queue<Runnable> queue = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean scheduled = new AtomicBoolean();
    private final Link link;
    private final Runnable settle;
    private final Runnable scheduledRun = this::runScheduled;
    private boolean attended; // session thread only

    /**
     * Makes an empty queue.
     *
     * @param link its thread runs the actions, one at a time and in order.
     * @param settle runs on that thread when actions wait; calls {@link #begin}, {@link #run} and {@link #end}.
     */
    Completions(Link link, Runnable settle) {
        this.link = link;
        this.settle = settle;
    }

    /** Announces that the caller, the session thread, will run all later actions before it waits. */
    void begin() {
        attended = true;
    }

    /**
     * Appends an action. Any thread; never runs the action in the caller.
     *
     * @param action runs on the session thread.
     */
    public void add(Runnable action) {
        queue.add(action);
        // Another thread may read an old value of attended, but the second test is false on every other thread.
        if (attended && link.isSessionThread()) {
            return;
        }
        if (!scheduled.get() && scheduled.compareAndSet(false, true)) {
            schedule();
        }
    }

    private void schedule() {
        try {
            link.execute(scheduledRun);
        } catch (RejectedExecutionException e) {
            // The event loop has ended with its session. No guest waits for a reply, and the exit of the process frees
            // staging memory.
            queue.clear();
        }
    }

    private void runScheduled() {
        // Cleared before the queue is read; pairs with the check in add(). An action added after the last poll
        // schedules another run.
        scheduled.set(false);
        settle.run();
    }

    /** Whether actions wait. Session thread. */
    boolean isWaiting() {
        return !queue.isEmpty();
    }

    /** Runs all waiting actions. Session thread, after {@link #begin}. */
    void run() {
        for (Runnable action = queue.poll(); action != null; action = queue.poll()) {
            action.run();
        }
    }

    /** Ends {@link #begin}. Session thread. */
    void end() {
        attended = false;
        if (!queue.isEmpty() && scheduled.compareAndSet(false, true)) {
            schedule();
        }
    }
}
