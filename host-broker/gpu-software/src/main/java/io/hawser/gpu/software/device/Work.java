package io.hawser.gpu.software.device;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * One piece of work in stream order. It becomes ready when all work that it follows is done, and then runs once on one
 * of the scheduler's threads. Edges are added by the issuing thread only, before {@link #issue}; completion comes from
 * any thread.
 */
final class Work {
    /** What the work does; it must not throw. */
    @FunctionalInterface
    interface Body {
        void run();
    }

    private static final Body NOTHING = () -> { };
    private static final AtomicIntegerFieldUpdater<Work> WAITS_FOR =
        AtomicIntegerFieldUpdater.newUpdater(Work.class, "waitsFor");

    private final Scheduler scheduler;
    private final Body body;
    private final boolean report;
    // One more than the unfinished predecessors until issue(), so that it cannot start while edges are added.
    private volatile int waitsFor = 1;
    /** Made when the first comes: most work has none. */
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
     * Short work that tells someone that what it follows is done. It has run before anything that was issued behind the
     * same work starts or is told of: data of a copy is handed on before a later synchronisation is.
     */
    static Work report(Scheduler scheduler, Body body) {
        return new Work(scheduler, body, true);
    }

    /** A point with nothing before it: done now. */
    static Work finished(Scheduler scheduler) {
        Work work = new Work(scheduler, NOTHING);
        work.waitsFor = 0;
        work.doneNs = System.nanoTime();
        work.ran = true;
        work.done = true;
        return work;
    }

    /** Work that only marks a point; it is done as soon as what it follows is. */
    static Work marker(Scheduler scheduler) {
        return new Work(scheduler, NOTHING);
    }

    /** Makes this wait for {@code other}; null and finished work are ignored. */
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

    /** Ends the adding of edges; the work may run from now on. */
    void issue() {
        if (WAITS_FOR.decrementAndGet(this) == 0) {
            scheduler.start(this);
        }
    }

    /** As {@link #issue}, but runs short work at once on the calling thread when nothing is before it. */
    void issueInline() {
        if (WAITS_FOR.decrementAndGet(this) == 0) {
            run();
        }
    }

    /** Whether it does nothing, so that a thread need not be woken for it. */
    boolean isMarker() {
        return body == NOTHING;
    }

    /** Runs this and then, on the same thread, whatever becomes ready; all but one of those go to other threads. */
    void run() {
        Work work = this;
        while (work != null) {
            work.body.run();
            work = work.complete();
        }
    }

    private Work complete() {
        doneNs = System.nanoTime();
        ran = true; // pairs with isDone(): who was told by a report must find this done
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

    /** Followers that came since the last time; null, and done from now on, when there are none. */
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
            scheduler.start(next); // not here: what this reports on is not done before this returns
        }
    }

    /**
     * Whether it has run and been reported. Not from a report: while reports run, which never block, this waits for
     * them, since one of them may already have told the asker that it is done.
     */
    boolean isDone() {
        while (ran && !done) {
            Thread.yield();
        }
        return done;
    }

    /** {@link System#nanoTime} of its end; meaningful once done. */
    long doneNs() {
        return doneNs;
    }
}
