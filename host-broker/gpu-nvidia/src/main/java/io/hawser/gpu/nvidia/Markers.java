package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CUresult;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
 * <p>Order: an action has returned before the action of anything that was issued behind the same work begins. What is
 * found done is therefore looked for from the newest marker to the oldest: whatever a done one waited for is older, is
 * asked later, and so is found done too; the actions then run from the oldest on. One thread at a time does this, with
 * a lock that it holds until the actions have returned: they never wait for anything.
 */
final class Markers implements AutoCloseable {
    private static final int NOT_READY = CUresult.CUDA_ERROR_NOT_READY;
    /** How long the thread asks without a pause after it has last found something; then it sleeps between two looks. */
    private static final long SPIN_NS = 500_000;
    private static final long PAUSE_NS = 30_000;
    /** How long the issuing thread asks for itself: less than it costs to be told by another thread. */
    private static final long INLINE_NS = 4_000;
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
    private List<Marker> live = new ArrayList<>(); // oldest first; guarded by passing, as the next four
    private List<Marker> spare = new ArrayList<>();
    private final Map<Lane, ArrayDeque<Marker>> byLane = new HashMap<>();
    private final List<ArrayDeque<Marker>> lanes = new ArrayList<>(); // those of byLane
    private int nextLane;
    private final Set<Lane> reached = new HashSet<>(); // guarded by passing
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
            if (polled || watched.get() == 0) {
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
                live.add(marker);
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
        List<Marker> done = new ArrayList<>();
        reached.clear();
        for (int i = live.size() - 1; i >= 0; i--) {
            Marker marker = live.get(i);
            // What is done on a lane has everything before it done; a failed one is asked for its own error.
            marker.status = reached.contains(marker.lane) ? 0 : events.query(marker.event);
            if (marker.status == 0) {
                reached.add(marker.lane);
            }
            if (marker.status != NOT_READY) {
                done.add(marker);
            }
        }
        if (done.isEmpty()) {
            return false;
        }
        remove(done);
        events.flush(done.getFirst().event);
        for (int i = done.size() - 1; i >= 0; i--) {
            Marker marker = done.get(i);
            marker.action.accept(marker.status);
            give(marker.lane.context, marker.event);
            watched.decrementAndGet();
        }
        return true;
    }

    private void remove(List<Marker> done) {
        for (Marker marker : live) {
            if (marker.status == NOT_READY) {
                spare.add(marker);
            }
        }
        List<Marker> old = live;
        live = spare;
        spare = old;
        spare.clear();
        for (Marker marker : done) {
            ArrayDeque<Marker> lane = byLane.get(marker.lane);
            if (lane != null) {
                lane.removeIf(own -> own.status != NOT_READY);
                if (lane.isEmpty()) {
                    byLane.remove(marker.lane);
                    lanes.remove(lane);
                    nextLane = 0;
                }
            }
        }
    }

    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
    }
}
