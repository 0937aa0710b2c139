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
 * Nodes of graphs that call the guest. Their ids are used again and again: each launch makes exactly one CALLBACK for
 * each of its nodes, when the node is executed, or with an error when it never will be. A copy with the guest's own
 * memory has its bytes in staging memory, which the guest fills or reads while its CALLBACK is unanswered. Session
 * thread, but for {@link #run}.
 */
public final class GraphCallbacks {
    /** Nodes and executable nodes may share an id; each id costs memory here. */
    public static final int MAX_IDS = 1 << 20;
    /** Staging memory of one node: what a copy of a graph may be long. */
    public static final long MAX_COPY_BYTES = 256L << 20;
    /** Staging memory of a session's graphs, in use or kept for reuse, which a guest could make without end. */
    public static final long MAX_STAGING_BYTES = 512L << 20;

    private static final long SMALLEST_STAGING_BYTES = 4096;

    private final Completions completions;
    private final Outbox outbox;
    private final Gates gates;
    private final LongObjectHashMap<State> states = new LongObjectHashMap<>();
    private final Set<CountDownLatch> waiting = ConcurrentHashMap.newKeySet();
    private volatile boolean cancelled;
    /**
     * The backend's, pinned where the GPU wants it so: NVIDIA's driver does copies with other memory inside of the
     * launch, on the thread that is to take the guest's answer, and waits there for the host node before them.
     */
    private final LongFunction<MemorySegment> allocate;
    private final Consumer<MemorySegment> free;
    private final List<MemorySegment> allocated = new ArrayList<>();
    private final Map<Long, ArrayDeque<MemorySegment>> idle = new HashMap<>(); // by length, powers of two
    private long stagingBytes; // of all that is allocated
    private int running; // launches that call the guest
    private Runnable whenFreed; // not null once nothing more is launched

    /** What is known of one id. */
    private static final class State {
        final long id;
        final boolean toDevice;
        final long bytes; // 0: a host function
        MemorySegment staging = MemorySegment.NULL; // a power of two, at least as long
        int users;
        int unstarted; // launched, and neither executed nor given up
        final ArrayDeque<Gates.Gate> gates = new ArrayDeque<>();
        final ArrayDeque<Request> queue = new ArrayDeque<>(); // the first one is sent

        State(long id, boolean toDevice, long bytes) {
            this.id = id;
            this.toDevice = toDevice;
            this.bytes = bytes;
        }
    }

    /** A CALLBACK that was asked for; without a latch when nothing waits for it. */
    private record Request(int status, CountDownLatch done) { }

    /**
     * Starts without ids.
     *
     * @param completions brings what nodes say to the session thread.
     * @param outbox takes the requests to the guest.
     * @param gates told of what waits for the guest.
     * @param allocate gives staging memory of so many bytes, null when there is none; must not wait for the device.
     * @param free takes it back.
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
     * Takes a share of an id, for a node or an executable one.
     *
     * @param id the guest's.
     * @param bytes length of the copy's bytes; 0 for a host function.
     * @param toDevice whether the copy goes there.
     * @return 0; a CUresult when there is no memory; -1 when the id stands for another kind or length.
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
        MemorySegment memory = stagingBytes + length > MAX_STAGING_BYTES ? null : allocate.apply(length);
        if (memory != null) {
            stagingBytes += length;
            allocated.add(memory);
        }
        return memory;
    }

    /**
     * Gives a share back; no launch of what had it is running.
     *
     * @param id with a share.
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
     * Staging memory of an id with a share.
     *
     * @param id of a copy.
     * @return as long as the copy's bytes.
     */
    public MemorySegment staging(long id) {
        State state = states.get(id);
        return state.staging.asSlice(0, state.bytes);
    }

    /**
     * Staging memory that the guest may fill or read now.
     *
     * @param id the guest's.
     * @param toDevice which of the two it wants.
     * @return the memory, or null without an unanswered CALLBACK of such a copy.
     */
    public MemorySegment unanswered(long id, boolean toDevice) {
        State state = states.get(id);
        return state == null || state.bytes == 0 || state.toDevice != toDevice || state.queue.isEmpty() ? null
            : state.staging.asSlice(0, state.bytes);
    }

    /** A launch begins that calls the guest. */
    void begins() {
        running++;
    }

    /** It has ended. */
    void ends() {
        running--;
        freeWhenQuiet();
    }

    /**
     * Gives staging memory back to the backend, as soon as no launch can use it. The session is over.
     *
     * @param whenAllIsBack run once then, perhaps at once.
     */
    void freeStaging(Runnable whenAllIsBack) {
        whenFreed = whenAllIsBack;
        freeWhenQuiet();
    }

    private void freeWhenQuiet() {
        if (whenFreed != null && running == 0) {
            Runnable told = whenFreed;
            whenFreed = null;
            allocated.forEach(free);
            allocated.clear();
            told.run();
        }
    }

    /**
     * A launch will execute the node.
     *
     * @param id with a share.
     */
    public void launched(long id) {
        State state = states.get(id);
        state.unstarted++;
        state.gates.add(gates.open());
    }

    /**
     * A launch has failed; if it has not executed the node it never will.
     *
     * @param id with a share.
     * @param status CUresult, not 0.
     */
    public void failed(long id, int status) {
        State state = states.get(id);
        // Launches that are on their way at once are not told apart: each is counted once, here or when it executes.
        if (state.unstarted > 0) {
            state.unstarted--;
            ask(state, new Request(status, null));
        }
    }

    /**
     * A node is executed: asks the guest and waits for its answer. Any thread.
     *
     * @param id of the node.
     */
    public void run(long id) {
        CountDownLatch done = new CountDownLatch(1);
        waiting.add(done);
        if (cancelled) { // pairs with cancel(): it sees the latch, or this sees that it has been
            waiting.remove(done);
            return;
        }
        completions.add(() -> started(id, done));
        try {
            done.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the backend is being closed: let its thread end
        }
        waiting.remove(done);
    }

    private void started(long id, CountDownLatch done) {
        State state = states.get(id);
        if (state == null || state.unstarted == 0 || cancelled) {
            done.countDown(); // disabled, or given up before
            return;
        }
        state.unstarted--;
        ask(state, new Request(0, done));
    }

    private void ask(State state, Request request) {
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
     * Takes an acknowledgement.
     *
     * @param id the guest's.
     * @return false when no graph's node has asked for it.
     */
    boolean done(long id) {
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

    /** Lets every node go on: the session is over. */
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
