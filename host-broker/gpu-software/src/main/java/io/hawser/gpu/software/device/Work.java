package io.hawser.gpu.software.device;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * One piece of work in stream order. It becomes ready when all of its predecessors are done, and then runs once on one
 * of the scheduler's threads. Only the issuing thread adds edges, before {@link #issue}; any thread completes work.
 */
final class Work {
    /** The action of the work; it must not throw. */
    @FunctionalInterface
    interface Body {
        void run();
    }

    private static final Body NOTHING = () -> {};
    private static final AtomicIntegerFieldUpdater<Work> WAITS_FOR =
        AtomicIntegerFieldUpdater.newUpdater(Work.class, "waitsFor");

    private final Scheduler scheduler;
    private final Body body;
    private final boolean report;
    // The number of unfinished predecessors; one more until issue(), so that the work cannot start while edges are
    // added.
    @SuppressWarnings("unused") // WAITS_FOR reads it
    private volatile int waitsFor = 1;
    /** Created for the first follower, because most work has none. */
    private List<Work> followers;
    private volatile boolean ran;
    private volatile boolean done;
    private volatile long doneNs;

    Work(Scheduler scheduler, Body body) {
        this(scheduler, body, false);
    }

    private Work(Scheduler scheduler, Body body, boolean report) {
        this.scheduler = scheduler;
        this.body = body;
        this.report = report;
    }

    /**
     * Short work that reports the completion of its predecessors. It runs before other work behind the same
     * predecessors starts or is reported: a copy's data arrives before a later synchronisation returns.
     */
    static Work report(Scheduler scheduler, Body body) {
        return new Work(scheduler, body, true);
    }

    /** A point without predecessors: done from the start. */
    static Work finished(Scheduler scheduler) {
        Work work = new Work(scheduler, NOTHING);
        work.waitsFor = 0;
        work.doneNs = System.nanoTime();
        work.ran = true;
        work.done = true;
        return work;
    }

    /** Work that only marks a point; it is done as soon as its predecessors are. */
    static Work marker(Scheduler scheduler) {
        return new Work(scheduler, NOTHING);
    }

    /** Makes this work wait for {@code other}; ignores null and finished work. */
    void follow(Work other) {
        if (other == null) {
            return;
        }
        synchronized (other) {
            if (!other.done) {
                WAITS_FOR.incrementAndGet(this);
                if (other.followers == null) {
                    other.followers = new ArrayList<>(2);
                }
                other.followers.add(this);
            }
        }
    }

    /** Ends the adding of edges; from now on the work may run. */
    void issue() {
        if (WAITS_FOR.decrementAndGet(this) == 0) {
            scheduler.start(this);
        }
    }

    /** As {@link #issue}, but runs short work on the calling thread when it has no predecessors. */
    void issueInline() {
        if (WAITS_FOR.decrementAndGet(this) == 0) {
            run();
        }
    }

    /** Whether the work does nothing, so that it needs no thread. */
    boolean isMarker() {
        return body == NOTHING;
    }

    /**
     * Runs this work, then on the same thread one follower that becomes ready; the other ready followers get other
     * threads.
     */
    void run() {
        Work work = this;
        while (work != null) {
            work.body.run();
            work = work.complete();
        }
    }

    private Work complete() {
        doneNs = System.nanoTime();
        ran = true; // pairs with isDone(): a thread that a report notified must find this done
        List<Work> ready = null;
        for (List<Work> batch = takeFollowers(); batch != null; batch = takeFollowers()) {
            for (Work follower : batch) {
                if (!follower.report) {
                    ready = ready == null ? new ArrayList<>(2) : ready;
                    ready.add(follower);
                } else if (WAITS_FOR.decrementAndGet(follower) == 0) {
                    follower.runReport();
                }
            }
        }
        Work next = null;
        for (Work follower : ready == null ? List.<Work>of() : ready) {
            if (WAITS_FOR.decrementAndGet(follower) != 0) {
                continue;
            }
            if (next == null) {
                next = follower;
            } else {
                scheduler.start(follower);
            }
        }
        return next;
    }

    /** Followers added since the last call. Without any, returns null, and the work is done. */
    private synchronized List<Work> takeFollowers() {
        List<Work> taken = followers;
        followers = null;
        done = taken == null;
        return taken;
    }

    private void runReport() {
        body.run();
        Work next = complete();
        if (next != null) {
            scheduler.start(next); // on another thread: the predecessor is not done before this method returns
        }
    }

    /**
     * Whether the work and its reports have run. A report must not call this method. While reports run, this waits for
     * them, because a report may already have notified the caller of the completion; reports never block.
     */
    boolean isDone() {
        while (ran && !done) {
            Thread.yield();
        }
        return done;
    }

    /** {@link System#nanoTime} of its end; valid once done. */
    long doneNs() {
        return doneNs;
    }
}
