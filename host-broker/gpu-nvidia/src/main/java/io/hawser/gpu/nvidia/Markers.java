package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUresult;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;

/**
 * Detects the end of work: it puts an event behind the work, and a thread polls the oldest events. Polling costs a
 * fraction of a callback by the driver, and delays no stream. The session's own thread polls while it does so
 * frequently ({@link #polled}), so that no thread switch is needed; otherwise a thread of this class does.
 *
 * <p>Order: the action of some work returns before the action of any later work behind it begins. To guarantee this,
 * the streams are polled until one round over all of them finds no new event. All work that a reached event depends on
 * was done before the event was found, so the next poll of that stream finds it too. The actions then run in the order
 * of issue. One thread at a time does this, under a lock that it holds until the actions have returned. Actions never
 * wait.
 */
final class Markers implements AutoCloseable {
    private static final int NOT_READY = CUresult.CUDA_ERROR_NOT_READY;
    /** After its last find, the thread polls for this time without a pause; then it sleeps between two polls. */
    private static final long SPIN_NS = 500_000;
    private static final long PAUSE_NS = 30_000;
    /** A session thread that polls takes a wanted pass within this time; otherwise it is in a call. */
    private static final long SESSION_NS = 20_000;
    /** Longest time that the issuing thread polls itself: less than the cost of a notification by another thread. */
    private static final long INLINE_NS = 4_000;
    private static final Comparator<Marker> BY_ISSUE = Comparator.comparingLong(marker -> marker.number);
    private static final int LANES_A_POLL = 4; // bounds the cost of a poll for the session thread

    /** The functions of the driver's events that this class needs. Any thread. */
    interface Events {
        /** Creates an event in the current context. Returns its handle, or a negated CUresult. */
        long create();

        /** The context whose end destroys the events of a context: for a green context its primary context. */
        default long home(long context) {
            return context;
        }

        /** CUDA_SUCCESS, CUDA_ERROR_NOT_READY or the context's error. */
        int query(long event);

        /** Forwards the output of the work before a reached event. */
        void flush(long event);
    }

    /** A stream of a context, in which work runs in order. */
    private record Lane(long context, long stream) {}

    /** An event behind some work. */
    private static final class Marker {
        final Lane lane;
        final long event;
        final IntConsumer action;
        long number; // numbered in the order of issue
        int status = NOT_READY;

        Marker(Lane lane, long event, IntConsumer action) {
            this.lane = lane;
            this.event = event;
            this.action = action;
        }
    }

    private final Events events;
    private final Thread thread;
    private final ArrayDeque<Marker> added = new ArrayDeque<>(); // guarded by itself
    /** By context, each from its first event until its destruction; guarded by itself. */
    private final Map<Long, ArrayDeque<Long>> idleEvents = new HashMap<>();
    private final ReentrantLock passing = new ReentrantLock();
    /** The markers of each lane, oldest first; only lanes with markers. Guarded by passing, as the next four fields. */
    private final Map<Lane, ArrayDeque<Marker>> byLane = new HashMap<>();
    private final List<ArrayDeque<Marker>> lanes = new ArrayList<>(); // the values of byLane
    private int nextLane;
    private long issued;
    private final List<Marker> done = new ArrayList<>();
    private final AtomicInteger watched = new AtomicInteger(); // markers whose action has not returned
    private final AtomicLong passesWanted = new AtomicLong();
    private volatile long passesDone; // written under passing
    private volatile boolean polled;
    private volatile boolean closed;

    Markers(Events events) {
        this.events = events;
        thread = new Thread(this::run, "gpu-markers");
        thread.setDaemon(true);
        thread.start();
    }

    /** An event of a context, whose home must be current; a negated CUresult on failure. */
    long event(long context) {
        synchronized (idleEvents) {
            ArrayDeque<Long> idle = idleEvents.computeIfAbsent(events.home(context), key -> new ArrayDeque<>());
            if (!idle.isEmpty()) {
                return idle.pop();
            }
        }
        return events.create();
    }

    /** Gives back an event that was never passed to {@link #add}. */
    void give(long context, long event) {
        synchronized (idleEvents) {
            ArrayDeque<Long> idle = idleEvents.get(events.home(context));
            if (idle != null) { // otherwise the event was destroyed with its context
                idle.push(event);
            }
        }
    }

    /** Drops the events of a context that is about to be destroyed. */
    void forget(long context) {
        synchronized (idleEvents) {
            idleEvents.remove(context);
        }
    }

    /** Whether any marker is pending. */
    boolean isWatching() {
        return watched.get() != 0;
    }

    /** Whether the session thread polls frequently. */
    boolean isPolled() {
        return polled;
    }

    /** Sets whether the session thread calls {@link #poll} frequently from now on. */
    void setPolled(boolean often) {
        if (polled != often) {
            polled = often;
            if (!often && watched.get() != 0) {
                LockSupport.unpark(thread);
            }
        }
    }

    /**
     * Runs the action when the recorded event is reached or its context has failed, on the thread that finds this. If
     * no other marker is pending and the session thread does not poll, this call first polls for some microseconds. If
     * the work is done by then, it runs the action itself.
     */
    void add(long context, long stream, long event, IntConsumer action) {
        boolean isPolled = polled;
        if (!isPolled && watched.get() == 0) {
            long startNs = System.nanoTime();
            int status;
            do {
                status = events.query(event);
            } while (status == NOT_READY && System.nanoTime() - startNs < INLINE_NS);
            if (status != NOT_READY) {
                events.flush(event);
                action.accept(status);
                give(context, event);
                return;
            }
        }
        watched.incrementAndGet();
        boolean wasEmpty;
        synchronized (added) {
            wasEmpty = added.isEmpty();
            added.add(new Marker(new Lane(context, stream), event, action));
        }
        if (wasEmpty && !isPolled) {
            LockSupport.unpark(thread);
        }
    }

    /**
     * Polls the oldest markers of a few streams and runs the actions of finished work; returns whether there was any.
     * Never waits.
     */
    boolean poll() {
        if (watched.get() == 0 || !passing.tryLock()) {
            return false;
        }
        try {
            if (passesWanted.get() != passesDone) {
                return passForAll();
            }
            takeAdded();
            return anyHeadIsDone(LANES_A_POLL) && finishDone();
        } finally {
            passing.unlock();
        }
    }

    /** Runs the actions of all work that is done now. Waits while another thread does so. */
    void pass() {
        if (watched.get() != 0) {
            passAlone();
        }
    }

    private void passAlone() {
        passing.lock();
        try {
            passForAll();
        } finally {
            passing.unlock();
        }
    }

    /** The pass that all threads have wanted until now; returns whether it found anything. Holds passing. */
    private boolean passForAll() {
        long wanted = passesWanted.get();
        takeAdded();
        boolean found = finishDone();
        passesDone = wanted;
        return found;
    }

    /**
     * Returns when the actions of all work that is done now have returned. Called on a thread of the driver before the
     * guest can learn by another way that the work is done. Such a thread must not query events itself. The session
     * thread does it, if it polls; waking another thread takes longer than the whole pass.
     */
    void catchUp() {
        if (watched.get() == 0) {
            return;
        }
        long wanted = passesWanted.incrementAndGet();
        long startNs = System.nanoTime();
        boolean isWoken = !polled;
        if (isWoken) {
            LockSupport.unpark(thread);
        }
        while (passesDone < wanted && !closed) {
            Thread.onSpinWait(); // a pass takes microseconds
            if (!isWoken && System.nanoTime() - startNs > SESSION_NS) {
                isWoken = true;
                LockSupport.unpark(thread);
            }
        }
    }

    private void run() {
        long lastNs = System.nanoTime();
        while (!closed) {
            if (passesWanted.get() != passesDone) {
                passAlone();
            }
            // This order of reads leaves a marker that was added after the session thread began to poll to that thread.
            if (watched.get() == 0 || polled) {
                if (passesWanted.get() == passesDone) {
                    LockSupport.park(this);
                }
                lastNs = System.nanoTime();
            } else if (checkAll()) {
                lastNs = System.nanoTime();
            } else if (System.nanoTime() - lastNs < SPIN_NS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(this, PAUSE_NS);
            }
        }
    }

    private boolean checkAll() {
        passing.lock();
        try {
            takeAdded();
            return anyHeadIsDone(lanes.size()) && finishDone();
        } finally {
            passing.unlock();
        }
    }

    private void takeAdded() {
        synchronized (added) {
            for (Marker marker = added.poll(); marker != null; marker = added.poll()) {
                marker.number = ++issued;
                ArrayDeque<Marker> lane = byLane.get(marker.lane);
                if (lane == null) {
                    lane = new ArrayDeque<>();
                    byLane.put(marker.lane, lane);
                    lanes.add(lane);
                }
                lane.add(marker);
            }
        }
    }

    /**
     * Polls the oldest marker of up to {@code limit} lanes, round robin; returns whether one is done. A lane without a
     * done oldest marker has no done marker.
     */
    private boolean anyHeadIsDone(int limit) {
        for (int i = Math.min(limit, lanes.size()); i > 0; i--) {
            nextLane = nextLane + 1 < lanes.size() ? nextLane + 1 : 0;
            if (events.query(lanes.get(nextLane).peek().event) != NOT_READY) {
                return true;
            }
        }
        return false;
    }

    private boolean finishDone() {
        int before;
        do {
            before = done.size();
            for (int i = lanes.size() - 1; i >= 0; i--) {
                takeDone(lanes.get(i));
            }
        } while (done.size() > before);
        if (done.isEmpty()) {
            return false;
        }
        done.sort(BY_ISSUE);
        events.flush(done.getLast().event);
        for (Marker marker : done) {
            marker.action.accept(marker.status);
            give(marker.lane.context, marker.event);
            watched.decrementAndGet();
        }
        done.clear();
        return true;
    }

    private void takeDone(ArrayDeque<Marker> lane) {
        for (Marker oldest = lane.peek(); oldest != null; oldest = lane.peek()) {
            oldest.status = events.query(oldest.event);
            if (oldest.status == NOT_READY) {
                return;
            }
            done.add(lane.remove());
        }
        Marker last = done.getLast(); // a lane is empty only here
        byLane.remove(last.lane);
        lanes.remove(lane);
        nextLane = 0;
    }

    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
    }
}
