package io.hawser.worker.session;

import io.hawser.worker.channel.Outbox;
import io.netty.util.collection.LongObjectHashMap;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import java.util.function.LongFunction;

/**
 * Graph nodes that call the guest. The guest reuses their ids: each launch sends exactly one CALLBACK for each of its
 * nodes. The worker sends it when the node is executed, or with an error when the node never will be. A copy with the
 * guest's own memory keeps its bytes in staging memory. The guest fills or reads that memory before it acknowledges the
 * CALLBACK. Session thread, except for {@link #run}.
 */
public final class GraphCallbacks {
    /** Ids of a session; each costs memory here. Nodes and executable nodes may share an id. */
    public static final int MAX_IDS = 1 << 20;
    /** Staging memory of one node, which bounds the length of a graph's copy. */
    public static final long MAX_COPY_BYTES = 256L << 20;
    /**
     * Staging memory of a session's graphs, in use or kept for reuse; stops a guest that would allocate without end.
     */
    public static final long MAX_STAGING_BYTES = 512L << 20;

    private static final long SMALLEST_STAGING_BYTES = 4096;

    private final Completions completions;
    private final Outbox outbox;
    private final Gates gates;
    private final LongObjectHashMap<State> states = new LongObjectHashMap<>();
    private final Set<CountDownLatch> waiting = ConcurrentHashMap.newKeySet();
    private volatile boolean cancelled;
    /**
     * Allocates memory of the backend, pinned if the GPU needs that. With other memory, NVIDIA's driver copies inside
     * the launch call and waits there for the host node before the copy. The launch call runs on the session thread,
     * which alone can take the guest's acknowledgement, so it would never return.
     */
    private final LongFunction<MemorySegment> allocate;
    private final Consumer<MemorySegment> free;
    private final List<MemorySegment> allocated = new ArrayList<>();
    private final Map<Long, ArrayDeque<MemorySegment>> idle = new HashMap<>(); // by length, powers of two
    private long stagingBytes; // all allocated staging memory
    private int running; // running launches that call the guest
    private Runnable whenFreed; // not null once the session is over and launches nothing more

    /** The state of one id. */
    private static final class State {
        final long id;
        final boolean toDevice;
        final long bytes; // 0: a host function
        MemorySegment staging = MemorySegment.NULL; // its length is a power of two, at least bytes
        int users;
        int unstarted; // launched, but neither executed nor given up yet
        final ArrayDeque<Gates.Gate> gates = new ArrayDeque<>();
        final ArrayDeque<Request> queue = new ArrayDeque<>(); // the CALLBACK of the first one has been sent

        State(long id, boolean toDevice, long bytes) {
            this.id = id;
            this.toDevice = toDevice;
            this.bytes = bytes;
        }
    }

    /** A CALLBACK for the guest; {@code done} is null when no node waits for the acknowledgement. */
    private record Request(int status, CountDownLatch done) {}

    /**
     * Starts without ids.
     *
     * @param completions passes events of nodes to the session thread.
     * @param outbox takes the requests to the guest.
     * @param gates records which work waits for the guest.
     * @param allocate allocates staging memory of so many bytes, null when none is left; must not wait for the device.
     * @param free frees it.
     */
    GraphCallbacks(Completions completions, Outbox outbox, Gates gates, LongFunction<MemorySegment> allocate,
        Consumer<MemorySegment> free) {
        this.completions = completions;
        this.outbox = outbox;
        this.gates = gates;
        this.allocate = allocate;
        this.free = free;
    }

    /**
     * Adds a user of an id: a node or an executable node.
     *
     * @param id the guest's id.
     * @param bytes length of the copy; 0 for a host function.
     * @param toDevice whether the copy is to the device.
     * @return 0; a CUresult when no memory is left; -1 when the id is in use for another kind or length.
     */
    public int share(long id, long bytes, boolean toDevice) {
        State state = states.get(id);
        if (state == null) {
            state = new State(id, toDevice, bytes);
            if (bytes > 0 && states.size() < MAX_IDS) {
                state.staging = take(bytes);
            }
            if (states.size() >= MAX_IDS || state.staging == null) {
                return CudaResult.OUT_OF_MEMORY;
            }
            states.put(id, state);
        }
        if (state.bytes != bytes || bytes > 0 && state.toDevice != toDevice) {
            return -1;
        }
        state.users++;
        return 0;
    }

    private MemorySegment take(long bytes) {
        if (bytes > MAX_COPY_BYTES) {
            return null;
        }
        long length = Math.max(SMALLEST_STAGING_BYTES, Long.highestOneBit(bytes - 1) << 1);
        ArrayDeque<MemorySegment> kept = idle.computeIfAbsent(length, key -> new ArrayDeque<>());
        if (!kept.isEmpty()) {
            return kept.pop();
        }
        return stagingBytes + length > MAX_STAGING_BYTES ? null : allocateForSession(length);
    }

    /**
     * Allocates staging memory that the session keeps. Work that uses it counts as launches that call the guest.
     *
     * @param bytes length, counted in {@link #MAX_STAGING_BYTES}.
     * @return null when the backend has none left.
     */
    public MemorySegment allocateForSession(long bytes) {
        MemorySegment memory = allocate.apply(bytes);
        if (memory != null) {
            stagingBytes += bytes;
            allocated.add(memory);
        }
        return memory;
    }

    /**
     * Removes a user of an id. No launch of that user may be running.
     *
     * @param id an id with a user.
     */
    public void release(long id) {
        State state = states.get(id);
        state.users--;
        settle(state);
    }

    private void settle(State state) {
        if (state.users == 0 && state.unstarted == 0 && state.queue.isEmpty()) {
            states.remove(state.id);
            if (state.bytes > 0) {
                idle.get(state.staging.byteSize()).push(state.staging);
            }
        }
    }

    /**
     * Staging memory of an id.
     *
     * @param id an id with a user, of a copy.
     * @return as long as the copy.
     */
    public MemorySegment staging(long id) {
        State state = states.get(id);
        return state.staging.asSlice(0, state.bytes);
    }

    /**
     * Staging memory that the guest may access now.
     *
     * @param id the guest's id.
     * @param toDevice true when the guest wants to fill the memory of a copy to the device, false when it wants to
     *     read.
     * @return the memory, or null when no CALLBACK of such a copy is unacknowledged.
     */
    public MemorySegment unanswered(long id, boolean toDevice) {
        State state = states.get(id);
        return state == null || state.bytes == 0 || state.toDevice != toDevice || state.queue.isEmpty() ? null
            : state.staging.asSlice(0, state.bytes);
    }

    /** Counts the start of a launch that calls the guest. */
    public void launchBegins() {
        running++;
    }

    /** Counts the end of such a launch. */
    public void launchEnds() {
        running--;
        freeIfUnused();
    }

    /**
     * Frees the staging memory as soon as no launch can use it. The session is over.
     *
     * @param whenAllIsBack runs once afterwards; possibly during this call.
     */
    void freeStaging(Runnable whenAllIsBack) {
        whenFreed = whenAllIsBack;
        freeIfUnused();
    }

    private void freeIfUnused() {
        if (whenFreed != null && running == 0) {
            Runnable action = whenFreed;
            whenFreed = null;
            allocated.forEach(free);
            allocated.clear();
            action.run();
        }
    }

    /**
     * Counts an execution of the node that a launch will bring.
     *
     * @param id an id with a user.
     */
    public void launched(long id) {
        State state = states.get(id);
        state.unstarted++;
        state.gates.add(gates.open());
    }

    /**
     * Handles the failure of a launch: if it has not executed the node, it never will.
     *
     * @param id an id with a user.
     * @param status CUresult, not 0.
     */
    public void failed(long id, int status) {
        State state = states.get(id);
        // Concurrent launches cannot be distinguished, so each execution is only counted: here or when the node runs.
        if (state.unstarted > 0) {
            state.unstarted--;
            enqueue(state, new Request(status, null));
        }
    }

    /**
     * Executes a node: sends a CALLBACK to the guest and waits for its acknowledgement. Any thread.
     *
     * @param id the node's id.
     */
    public void run(long id) {
        CountDownLatch done = new CountDownLatch(1);
        waiting.add(done);
        if (cancelled) { // pairs with cancel(): either cancel() sees the latch, or this thread sees cancelled
            waiting.remove(done);
            return;
        }
        completions.add(() -> started(id, done));
        try {
            done.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the backend is closing; let its thread end
        }
        waiting.remove(done);
    }

    private void started(long id, CountDownLatch done) {
        State state = states.get(id);
        if (state == null || state.unstarted == 0 || cancelled) {
            done.countDown(); // the node is disabled, or its launch was given up before
            return;
        }
        state.unstarted--;
        enqueue(state, new Request(0, done));
    }

    private void enqueue(State state, Request request) {
        state.queue.add(request);
        if (state.queue.size() == 1) {
            send(state);
        }
    }

    private void send(State state) {
        if (!cancelled) {
            outbox.callback(state.id, state.queue.peek().status);
        }
    }

    /**
     * Takes the guest's acknowledgement.
     *
     * @param id the guest's id.
     * @return false when no CALLBACK of a graph's node with this id is unacknowledged.
     */
    boolean acknowledge(long id) {
        State state = states.get(id);
        if (state == null || state.queue.isEmpty()) {
            return false;
        }
        Request request = state.queue.remove();
        if (request.done != null) {
            request.done.countDown();
        }
        gates.close(state.gates.remove());
        if (!state.queue.isEmpty()) {
            send(state);
        } else {
            settle(state);
        }
        return true;
    }

    /** Releases every waiting node: the session is over. */
    void cancel() {
        cancelled = true;
        waiting.forEach(CountDownLatch::countDown);
        for (State state : states.values()) {
            state.gates.forEach(gates::close);
            state.gates.clear();
            state.queue.clear();
        }
    }
}
