package io.hawser.worker.session;

import io.hawser.worker.channel.Link;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Ends of asynchronous work, brought from the backend's threads to the session thread in the order in which they were
 * reported: a copy's data is sent before the reply to a synchronise that came after it. What that thread has found
 * itself crosses nothing: it runs it when it has served what it is at.
 */
public final class Completions {
    private final Queue<Runnable> queue = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean scheduled = new AtomicBoolean();
    private final Link link;
    private final Runnable settle;
    private final Runnable scheduledRun = this::runScheduled;
    private boolean attended; // the session thread's

    /**
     * Makes an empty queue.
     *
     * @param link on whose thread the actions run, one at a time, in order.
     * @param settle run there when something waits: calls {@link #begin}, {@link #run} and {@link #end}.
     */
    Completions(Link link, Runnable settle) {
        this.link = link;
        this.settle = settle;
    }

    /** Says that the caller, the session thread, runs what is added from now on before it does anything else. */
    void begin() {
        attended = true;
    }

    /**
     * Appends an action. Any thread; never runs it in the caller.
     *
     * @param action what to do on the session thread.
     */
    public void add(Runnable action) {
        queue.add(action);
        // Another thread may see an old value of the first; it is not the session thread.
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
            // The loop has ended with its session: nobody is left to answer, and staging memory goes with the process.
            queue.clear();
        }
    }

    private void runScheduled() {
        // Cleared first, pairs with the check in add(): an action that comes after the last poll schedules again.
        scheduled.set(false);
        settle.run();
    }

    /** Whether something is to be run. Session thread. */
    boolean isWaiting() {
        return !queue.isEmpty();
    }

    /** Runs what has been added. Session thread, after {@link #begin}. */
    void run() {
        for (Runnable action = queue.poll(); action != null; action = queue.poll()) {
            action.run();
        }
    }

    /** Ends what {@link #begin} began. Session thread. */
    void end() {
        attended = false;
        if (!queue.isEmpty() && scheduled.compareAndSet(false, true)) {
            schedule();
        }
    }
}
