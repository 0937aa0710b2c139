package io.hawser.gpu.software.device;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

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

    private final Scheduler scheduler;
    private final Body body;
    private final boolean report;
    // One more than the unfinished predecessors until issue(), so that it cannot start while edges are added.
    private final AtomicInteger waitsFor = new AtomicInteger(1);
    private List<Work> followers = new ArrayList<>(2);
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
                waitsFor.incrementAndGet();
                other.followers.add(this);
            }
        }
    }

    /** Ends the adding of edges; the work may run from now on. */
    void issue() {
        if (waitsFor.decrementAndGet() == 0) {
            scheduler.start(this);
        }
    }

    /** As {@link #issue}, but runs short work at once on the calling thread when nothing is before it. */
    void issueInline() {
        if (waitsFor.decrementAndGet() == 0) {
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
        List<Work> ready = new ArrayList<>(2);
        for (List<Work> batch = takeFollowers(); batch != null; batch = takeFollowers()) {
            for (Work follower : batch) {
                if (!follower.report) {
                    ready.add(follower);
                } else if (follower.waitsFor.decrementAndGet() == 0) {
                    follower.runReport();
                }
            }
        }
        Work next = null;
        for (Work follower : ready) {
            if (follower.waitsFor.decrementAndGet() != 0) {
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
        if (followers.isEmpty()) {
            done = true;
            followers = null;
            return null;
        }
        List<Work> taken = followers;
        followers = new ArrayList<>(2);
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
