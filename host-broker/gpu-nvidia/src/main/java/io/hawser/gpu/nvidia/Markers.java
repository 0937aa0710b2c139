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
 * Tells when work is done: an event behind the work, and a thread that asks for the oldest events. Asking costs a
 * fraction of what a callback by the driver costs, and holds no stream up. That thread is the session's own while it
 * says that it looks often enough ({@link #polled}), so that nothing has to cross threads, and else one of this.
 *
 * <p>Order: an action has returned before the action of anything that was issued behind the same work begins. Streams
 * are therefore looked at until a look at all of them has found nothing new: whatever a done marker waited for was done
 * before it was found, so the next look at that stream finds it. The actions then run in the order of issue. One thread
 * at a time does this, with a lock that it holds until the actions have returned: they never wait for anything.
 */
final class Markers implements AutoCloseable {
    private static final int NOT_READY = CUresult.CUDA_ERROR_NOT_READY;
    /** How long the thread asks without a pause after it has last found something; then it sleeps between two looks. */
    private static final long SPIN_NS = 500_000;
    private static final long PAUSE_NS = 30_000;
    /** How long the issuing thread asks for itself: less than it costs to be told by another thread. */
    private static final long INLINE_NS = 4_000;
    private static final Comparator<Marker> BY_ISSUE = Comparator.comparingLong(marker -> marker.number);
    private static final int LANES_A_POLL = 4; // bounds what a look costs the session thread

    /** The driver's events, as far as they matter here. Any thread. */
    interface Events {
        /** Makes an event in the current context: its handle, or the CUresult that says why not, negated. */
        long create();

        /** CUDA_SUCCESS, CUDA_ERROR_NOT_READY or the context's error. */
        int query(long event);

        /** Hands on what the work behind a reached event has printed. */
        void flush(long event);
    }

    /** Where work runs. */
    private record Lane(long context, long stream) { }

    /** One event behind some work. */
    private static final class Marker {
        final Lane lane;
        final long event;
        final IntConsumer action;
        long number; // in the order of issue
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
    /** By context, each since its first event and until it is destroyed; guarded by itself. */
    private final Map<Long, ArrayDeque<Long>> idleEvents = new HashMap<>();
    private final ReentrantLock passing = new ReentrantLock();
    /** Markers of each lane that has some, oldest first; guarded by passing, as the next four. */
    private final Map<Lane, ArrayDeque<Marker>> byLane = new HashMap<>();
    private final List<ArrayDeque<Marker>> lanes = new ArrayList<>(); // those of byLane
    private int nextLane;
    private long issued;
    private final List<Marker> done = new ArrayList<>();
    private final AtomicInteger watched = new AtomicInteger(); // added, and its action has not returned
    private final AtomicLong passesWanted = new AtomicLong();
    private volatile long passesDone;
    private volatile boolean polled;
    private volatile boolean closed;

    Markers(Events events) {
        this.events = events;
        thread = new Thread(this::run, "gpu-markers");
        thread.setDaemon(true);
        thread.start();
    }

    /** An event of a context, which must be current; when none can be had, the CUresult that says why, negated. */
    long event(long context) {
        synchronized (idleEvents) {
            ArrayDeque<Long> idle = idleEvents.computeIfAbsent(context, key -> new ArrayDeque<>());
            if (!idle.isEmpty()) {
                return idle.pop();
            }
        }
        return events.create();
    }

    /** Gives an event back that was never put into {@link #add}. */
    void give(long context, long event) {
        synchronized (idleEvents) {
            ArrayDeque<Long> idle = idleEvents.get(context);
            if (idle != null) { // else its context has been destroyed, and it with that
                idle.push(event);
            }
        }
    }

    /** Forgets the events of a context that is about to be destroyed. */
    void forget(long context) {
        synchronized (idleEvents) {
            idleEvents.remove(context);
        }
    }

    /** Whether any work is watched. */
    boolean isWatching() {
        return watched.get() != 0;
    }

    /** Whether the session thread looks often enough. */
    boolean isPolled() {
        return polled;
    }

    /** The session thread says whether it calls {@link #poll} from now on, until it says otherwise. */
    void polled(boolean often) {
        if (polled != often) {
            polled = often;
            if (!often && watched.get() != 0) {
                LockSupport.unpark(thread);
            }
        }
    }

    /**
     * Runs the action when the recorded event is reached or its context has failed: on the thread that finds it. At
     * once when nothing is being watched and the work is done within a few microseconds, unless the caller polls.
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

    /** Looks at the oldest markers of a few streams, and acts on what is done; whether anything was. Never waits. */
    boolean poll() {
        if (watched.get() == 0 || !passing.tryLock()) {
            return false;
        }
        try {
            takeAdded();
            return anyHeadIsDone(LANES_A_POLL) && finishDone();
        } finally {
            passing.unlock();
        }
    }

    /** Acts on everything that is done now. Waits for another thread that is doing so. */
    void pass() {
        if (watched.get() == 0) {
            return;
        }
        passing.lock();
        try {
            takeAdded();
            finishDone();
        } finally {
            passing.unlock();
        }
    }

    /**
     * Returns when the actions of all work that is done now have returned: before something tells by another way that
     * the work is done. A thread of the driver, which must not ask itself.
     */
    void catchUp() {
        if (watched.get() == 0) {
            return;
        }
        long wanted = passesWanted.incrementAndGet();
        LockSupport.unpark(thread);
        while (passesDone < wanted && !closed) {
            Thread.onSpinWait(); // a pass takes microseconds
        }
    }

    private void run() {
        long lastNs = System.nanoTime();
        while (!closed) {
            long wanted = passesWanted.get();
            if (wanted != passesDone) {
                pass();
                passesDone = wanted;
            }
            // In this order: what was added after the session thread had said that it polls is left to that thread.
            if (watched.get() == 0 || polled) {
                if (passesWanted.get() == passesDone) {
                    LockSupport.park(this);
                }
                lastNs = System.nanoTime();
            } else if (look()) {
                lastNs = System.nanoTime();
            } else if (System.nanoTime() - lastNs < SPIN_NS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(this, PAUSE_NS);
            }
        }
    }

    private boolean look() {
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

    /** Whether the oldest marker of some lane is done, of so many lanes, in turns: else none of theirs is. */
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
        Marker last = done.getLast(); // a lane is never empty but here
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
