package io.hawser.worker.session;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.shm.RecordLayout;
import io.hawser.worker.channel.Link;
import io.hawser.worker.channel.Outbox;
import io.hawser.worker.channel.RecordHandler;
import io.hawser.worker.channel.RecordHeader;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.memory.StagingPool;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * One guest process: its objects, its calls in order, its end. All of it lives on one thread, its {@link Link}'s;
 * backends report from theirs through {@link Completions}.
 */
public final class Session implements RecordHandler {
    private static final Logger LOG = System.getLogger(Session.class.getName());

    /** Number of the session that a worker holds with itself before it is ready; the log is silent about it. */
    public static final long WARM_UP = 0;

    /** Calls that wait for their completion; honest threads wait for one each, asynchronous reads for more. */
    private static final int MAX_DEFERRED_CALLS = 1 << 18;

    private final SessionOptions options;
    private final GpuBackend backend;
    private final SessionListener listener;
    private final Link link;
    private final Outbox outbox;
    private final Completions completions;
    private final StagingPool pool;
    private SharedImages images = SharedImages.NONE;
    private SharedNames names = SharedNames.NONE;
    private final CreditWindow credit;
    private final StreamWork work;
    private final Callbacks callbacks;
    private final GraphCallbacks graphCallbacks;
    private final Gates gates = new Gates();
    private final Turns turns;
    private TurnSeat seat; // null while nobody gives turns
    private boolean asks; // the link calls poll()
    private final RecordOrder order;
    private final GuestObjects objects;
    private final ArrayDeque<Call> idleCalls = new ArrayDeque<>();
    private final Set<Call> deferredCalls = new LinkedHashSet<>();

    private CallDispatcher dispatcher;
    private int deferredError;
    private boolean ended;
    private boolean isLost;

    private long calls;
    private long replies;
    private long receivedBytes;
    private long refusedRecords;
    private long kernels;

    /**
     * Prepares a session.
     *
     * @param options what admission has decided.
     * @param backend the GPU, this session's alone.
     * @param link to the guest.
     * @param perThreadStreams makes per-thread default streams.
     * @param listener told of the end.
     */
    public Session(SessionOptions options, GpuBackend backend, Link link, StreamTable.Maker perThreadStreams,
            SessionListener listener) {
        this.options = options;
        this.backend = backend;
        this.listener = listener;
        this.link = link;
        outbox = new Outbox(link);
        completions = new Completions(link, this::settleAndFlush);
        pool = new StagingPool(RecordLayout.MAX_RECORD_BYTES, backend::allocateStaging, backend::freeStaging);
        credit = new CreditWindow(options.creditWindowBytes());
        turns = new Turns(new TurnSurroundings(), System::nanoTime);
        order = new RecordOrder(new Serving(), gates, turns, pool);
        work = new StreamWork(backend, completions, credit, pool, outbox, gates, turns);
        callbacks = new Callbacks(completions, work, outbox, gates);
        graphCallbacks = new GraphCallbacks(completions, outbox, gates, backend::allocateStaging, backend::freeStaging);
        objects = new GuestObjects(backend, work, perThreadStreams, options.memory());
    }

    /**
     * Uses images that other sessions have loaded. Before {@link #start}.
     *
     * @param shared the broker's.
     */
    public void useImages(SharedImages shared) {
        images = shared;
    }

    /** The images of the vGPU's other sessions. */
    public SharedImages images() {
        return images;
    }

    /**
     * Takes turns on the GPU. Before {@link #start}.
     *
     * @param given the broker's; stays the caller's to close.
     */
    public void useTurns(TurnSeat given) {
        seat = given;
        turns.use(given.page());
    }

    /**
     * When the session may launch.
     *
     * @return never null.
     */
    public Turns turns() {
        return turns;
    }

    /** What the order of records needs of the rest. */
    private final class Serving implements RecordOrder.Server {
        @Override
        public boolean serve(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
            return Session.this.serve(header, bytes, offset, memory);
        }

        @Override
        public boolean isOver() {
            return ended;
        }

        @Override
        public void refuse(String reason) {
            Session.this.refuse(reason);
        }
    }

    /** What the turns need of the rest. */
    private final class TurnSurroundings implements Turns.Surroundings {
        @Override
        public void mark(StreamState stream) {
            work.whenReached(stream, status -> { });
        }

        @Override
        public void lookAgain(long delayMs) {
            link.schedule(() -> {
                if (!ended) {
                    turns.look();
                    settleAndFlush();
                }
            }, delayMs);
        }

        @Override
        public void ring() {
            seat.ring();
        }
    }

    /**
     * Shares memory with other sessions. Before {@link #start}.
     *
     * @param shared the broker's.
     */
    public void useNames(SharedNames shared) {
        names = shared;
    }

    /**
     * Memory that sessions of the vGPU share.
     *
     * @return never null.
     */
    public SharedNames names() {
        return names;
    }

    /**
     * Begins: greets the guest and takes its records. Session thread.
     *
     * @param callDispatcher serves the described functions.
     * @param descriptionHash of the description that it was made from.
     */
    public void start(CallDispatcher callDispatcher, long descriptionHash) {
        dispatcher = callDispatcher;
        order.use(callDispatcher);
        backend.polled(false); // until the link says so
        backend.output(new DeviceOutput(completions, outbox)::accept);
        outbox.welcome(options.sessionId(), backend.deviceCount(), credit.windowBytes(), descriptionHash);
        outbox.flush();
        link.open(this);
        LOG.log(isOwn() ? Level.DEBUG : Level.INFO,
            "session {0} begins: vgpu={1} peer={2} program={3}", id(), options.vgpu(),
            LogText.clean(options.peer()), LogText.clean(options.program()));
    }

    private boolean isOwn() {
        return options.sessionId() == WARM_UP;
    }

    /** Number of the session, as it is logged. */
    public String id() {
        return Long.toString(options.sessionId());
    }

    @Override
    public boolean admit(RecordHeader header) {
        if (ended) {
            return false;
        }
        int opcode = header.opcode();
        if (!ControlRecords.isRequest(opcode) && !dispatcher.isKnown(opcode)) {
            refuse("a record's opcode must be one of the description: opcode=0x" + Integer.toHexString(opcode)
                + " sequence=" + header.sequence());
            return false;
        }
        if (header.isCredited() && !credit.charge(header.lengthBytes())) {
            refuse("a guest must keep to its credit: outstandingBytes=" + credit.outstandingBytes()
                + " windowBytes=" + credit.windowBytes() + " lengthBytes=" + header.lengthBytes()
                + " sequence=" + header.sequence());
            return false;
        }
        return true;
    }

    @Override
    public Staging memoryFor(int bytes) {
        return pool.take(bytes);
    }

    @Override
    public void giveBack(Staging memory) {
        pool.give(memory);
    }

    @Override
    public boolean record(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
        if (ended) {
            return false;
        }
        receivedBytes += header.lengthBytes();
        completions.begin();
        return order.record(header, bytes, offset, memory);
    }

    private boolean serve(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
        calls++;
        backend.seal();
        Call call = idleCalls.isEmpty() ? new Call(this) : idleCalls.pop();
        call.begin(header, bytes, offset, memory);
        try {
            if (ControlRecords.isRequest(header.opcode())) {
                ControlRecords.serve(this, call, header);
            } else if (objects.switchContext(call, header.context())) {
                dispatcher.dispatch(header.opcode(), call);
            }
            if (call.result() != 0 && !ended) {
                dispatcher.failed(header.opcode(), call);
            }
        } catch (RuntimeException | StackOverflowError | LinkageError e) {
            // Defects of ours, or of a backend that met an image made to cause them.
            LOG.log(Level.ERROR, "session " + id() + ": a call failed inside the worker: opcode=0x"
                + Integer.toHexString(header.opcode()), e);
            end("internal error: " + e, true, CudaResult.UNKNOWN);
        }
        if (dispatcher.isLaunch(header.opcode())) {
            turns.issued(call.lastStream());
        }
        settleCredit(call, header);
        if (!ended && !call.isEnded() && !call.isDeferred()) {
            end("internal error: a call must end or be deferred: opcode=0x" + Integer.toHexString(header.opcode()),
                true, CudaResult.UNKNOWN);
        }
        boolean keeps = call.keepsMemory();
        if (!call.isDeferred()) {
            idleCalls.push(call);
        } else if (!call.isEnded()) {
            deferredCalls.add(call);
            if (deferredCalls.size() > MAX_DEFERRED_CALLS) {
                refuse("a guest must wait for its calls: unanswered=" + deferredCalls.size());
            }
        }
        return keeps;
    }

    private void settleCredit(Call call, RecordHeader header) {
        if (!header.isCredited()) {
            return;
        }
        if (call.lastStream() == null) {
            credit.release(header.lengthBytes());
        } else {
            work.charge(call.lastStream(), header.lengthBytes());
        }
    }

    @Override
    public void refuse(String reason) {
        if (!ended) {
            refusedRecords++;
            end("refused record: " + reason, true, CudaResult.DEVICE_UNAVAILABLE);
        }
    }

    @Override
    public void drained() {
        settleAndFlush();
    }

    @Override
    public boolean poll() {
        completions.begin();
        boolean any = backend.poll() | turns.poll();
        if (any) {
            settleAndFlush();
        } else {
            completions.end();
        }
        return any;
    }

    @Override
    public boolean isWorthPolling() {
        return !deferredCalls.isEmpty() && backend.isWorthPolling() || turns.isWorthPolling();
    }

    @Override
    public void polled(boolean polled) {
        asks = polled;
        if (!polled) {
            if (!ended) {
                turns.markAll(); // what has ended must be known to the broker while this sleeps
                wakeForTurn(true);
            }
            backend.seal(); // what is asked on this thread alone
        }
        backend.polled(polled);
    }

    private void settleAndFlush() {
        completions.begin();
        do {
            if (completions.isWaiting()) {
                backend.seal(); // what runs now may issue more
                completions.run();
            }
            order.settle();
            if (!ended) {
                turns.served(asks);
            }
        } while (completions.isWaiting());
        completions.end();
        if (!asks && !ended) {
            wakeForTurn(false);
        }
        flush();
    }

    /** The session thread will not ask: it must be told when it is its turn. */
    private void wakeForTurn(boolean polls) {
        if (turns.isWaiting()) {
            seat.wake(polls && turns.spins(), link, this::settleAndFlush);
        }
    }

    private void flush() {
        if (!ended && credit.isReportDue()) {
            outbox.credit(credit.report());
        }
        outbox.flush();
        if (!ended && outbox.unreadBytes() > Outbox.MAX_UNREAD_BYTES) {
            link.pauseUntilRead(); // a guest that asks and does not read
        }
    }

    @Override
    public void gone(String reason) {
        end(reason, false, 0);
        link.close();
    }

    /**
     * Ends the session: nothing more is served, streams that wait for the guest go on, the guest is told.
     *
     * @param reason one line.
     * @param error whether something went wrong.
     * @param lostResult what the guest's calls get from now on; 0 when there is no guest to tell.
     */
    public void end(String reason, boolean error, int lostResult) {
        if (ended) {
            return;
        }
        ended = true;
        LOG.log(error ? Level.WARNING : isOwn() ? Level.DEBUG : Level.INFO, "session {0} ends: {1}", id(),
            LogText.clean(reason));
        link.discard();
        callbacks.cancel();
        graphCallbacks.cancel();
        work.cancel();
        order.drop(credit);
        if (lostResult != 0) {
            outbox.lost(lostResult, reason);
            outbox.flush();
            link.leave();
        }
        listener.ended(reason, error);
    }

    /**
     * Frees everything that the session holds. Session thread, after {@link #end}.
     *
     * @return what is left, which should be nothing.
     */
    public Leftovers close() {
        for (Call call : Set.copyOf(deferredCalls)) {
            call.abandon();
        }
        objects.close();
        return leftovers();
    }

    /**
     * Gives the staging memory back to the backend, that of work which still runs as it ends. Session thread, after the
     * link's end.
     *
     * @param whenAllIsBack run on the session thread when none is in use any more.
     */
    public void freeStaging(Runnable whenAllIsBack) {
        link.dropPartial();
        pool.close(() -> graphCallbacks.freeStaging(whenAllIsBack));
    }

    /**
     * What a session holds.
     *
     * @param handles objects.
     * @param deviceBytes allocations.
     * @param stagingBytes staging memory in use.
     * @param calls not answered.
     * @param creditBytes not released.
     */
    public record Leftovers(int handles, long deviceBytes, long stagingBytes, int calls, long creditBytes) {
        /** Nothing. */
        public static final Leftovers NONE = new Leftovers(0, 0, 0, 0, 0);
    }

    /**
     * What the session holds now.
     *
     * @return counts.
     */
    public Leftovers leftovers() {
        return new Leftovers(objects.handles().size(), objects.usedBytes(), pool.usedBytes(),
            deferredCalls.size(), credit.outstandingBytes());
    }

    /** Ends a call's business: its reply, or the error that it leaves behind. */
    void finished(Call call, int result) {
        if (ended) {
            return;
        }
        if (result != 0 && !isLost && backend.isPoisoned(result)) {
            isLost = true;
            names.lost(result);
            LOG.log(Level.WARNING, "session {0}: its context is lost: CUresult={1}", id(), result);
        }
        if (!call.wantsReply()) {
            deferError(result);
            return;
        }
        replies++;
        if (result == 0) {
            outbox.append(call.reply(), call.reply().end());
        } else {
            outbox.reply(call.opcode(), call.sequence(), call.thread(), call.context(), result);
        }
    }

    /**
     * Remembers an error that no reply can carry; a later synchronising call delivers the first.
     *
     * @param result CUresult, 0 for none.
     */
    public void deferError(int result) {
        if (result != 0 && deferredError == 0) {
            deferredError = result;
            LOG.log(Level.DEBUG, "session {0}: deferred error: CUresult={1}", id(), result);
        }
    }

    /** The status of a synchronising call: its own error, or the deferred one, which is delivered by this. */
    int synchronised(int result) {
        if (result != 0) {
            deferredError = deferredError == result ? 0 : deferredError;
            return result;
        }
        int delivered = deferredError;
        deferredError = 0;
        return delivered;
    }

    /** Takes a deferred call back for use by a later record. */
    void recycle(Call call) {
        deferredCalls.remove(call);
        idleCalls.push(call);
    }

    boolean isSessionThread() {
        return link.isSessionThread();
    }

    /**
     * What the guest has made.
     *
     * @return never null.
     */
    public GuestObjects objects() {
        return objects;
    }

    /**
     * Work that waits in streams.
     *
     * @return never null.
     */
    public StreamWork work() {
        return work;
    }

    /**
     * Host functions.
     *
     * @return never null.
     */
    public Callbacks callbacks() {
        return callbacks;
    }

    /**
     * Nodes of graphs that call the guest.
     *
     * @return never null.
     */
    public GraphCallbacks graphCallbacks() {
        return graphCallbacks;
    }

    /**
     * Host functions that are not over, and what must wait for them.
     *
     * @return never null.
     */
    public Gates gates() {
        return gates;
    }

    /**
     * Brings the ends of work to the session thread.
     *
     * @return never null.
     */
    public Completions completions() {
        return completions;
    }

    /**
     * The GPU.
     *
     * @return never null.
     */
    public GpuBackend backend() {
        return backend;
    }

    Outbox outbox() {
        return outbox;
    }

    /** Counts a launch. */
    public void countKernel() {
        kernels++;
    }

    /**
     * Totals for the broker. Session thread.
     *
     * @return the session's figures.
     */
    public WorkerMessage.Stats stats() {
        return new WorkerMessage.Stats(calls, replies, replies, receivedBytes, outbox.sentBytes(), refusedRecords,
            objects.usedBytes(), kernels, turns.gpuTimeMs(), turns.waitedMs());
    }
}
