package io.hawser.worker.session;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.shm.wire.RecordLayout;
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
import java.util.function.Consumer;

/**
 * A session in the worker: one guest process with its objects, its calls in order, and its end. All of it runs on one
 * thread, that of its {@link Link}. Backend threads report to it through {@link Completions}.
 */
public final class Session implements RecordHandler {
    private static final Logger LOG = System.getLogger(Session.class.getName());

    /** Number of the session that a worker serves as its warm-up; logged at DEBUG only. */
    public static final long WARM_UP = 0;

    /** Calls that wait for completion. A correct guest has one per waiting thread, and more for asynchronous reads. */
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
    private TurnSeat seat; // null when no broker gives turns
    private boolean isPolled; // whether the link calls poll() frequently
    private final RecordOrder order;
    private final GuestObjects objects;
    private final MemoryWaits memoryWaits;
    private final Residence residence;
    private final Moving moving = new Moving(this);
    private final ArrayDeque<Call> idleCalls = new ArrayDeque<>();
    private final Set<Call> deferredCalls = new LinkedHashSet<>();

    private CallDispatcher dispatcher;
    private final DeferredError deferredError = new DeferredError();
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
     * @param options the result of admission.
     * @param backend the GPU, used only by this session.
     * @param link the link to the guest.
     * @param perThreadStreams makes per-thread default streams.
     * @param listener called at the session's end.
     */
    public Session(SessionOptions options, GpuBackend backend, Link link, StreamTable.Maker perThreadStreams,
        SessionListener listener) {
        this.options = options;
        this.backend = backend;
        this.listener = listener;
        this.link = link;
        outbox = new Outbox(link);
        completions = new Completions(link, this::settleAndFlush);
        Consumer<MemorySegment> free = link.forgetting(backend::freeStaging);
        pool = new StagingPool(RecordLayout.MAX_RECORD_BYTES, backend::allocateStaging, free);
        credit = new CreditWindow(options.creditWindowBytes());
        turns = new Turns(new TurnSurroundings(this), System::nanoTime);
        order = new RecordOrder(new Serving(), gates, turns, pool);
        work = new StreamWork(backend, completions, credit, pool, outbox, gates, turns);
        callbacks = new Callbacks(completions, work, outbox, gates);
        graphCallbacks = new GraphCallbacks(completions, outbox, gates, backend::allocateStaging, free);
        objects = new GuestObjects(backend, work, perThreadStreams, options.memory(), moving);
        memoryWaits = new MemoryWaits(options.memory(), this::serveLater, order);
        residence = new Residence(this, order, memoryWaits);
    }

    /** Uses the broker's images of other sessions. Call it before {@link #start}. */
    public void useImages(SharedImages shared) {
        images = shared;
    }

    /** The images of the vGPU's other sessions. */
    public SharedImages images() {
        return images;
    }

    /** Takes turns on the GPU, with the broker's page and bell, which the caller closes. Call before {@link #start}. */
    public void useTurns(TurnSeat given) {
        seat = given;
        turns.use(given.page());
    }

    TurnSeat seat() {
        return seat;
    }

    /** Moves the session's memory to host memory and back. */
    public Residence residence() {
        return residence;
    }

    /** Moves the session to another worker. */
    public Moving moving() {
        return moving;
    }

    /** Whether no call waits for its end, for the guest, or for the data of a copy. */
    boolean isQuiet() {
        return deferredCalls.isEmpty() && !work.isCopying() && gates.isIdle();
    }

    boolean isOver() {
        return ended;
    }

    /** Decides when the session may launch. */
    public Turns turns() {
        return turns;
    }

    /** Connects the order of records with this session. */
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

    /** Shares memory with other sessions by the broker's names. Call it before {@link #start}. */
    public void useNames(SharedNames shared) {
        names = shared;
    }

    /** Memory that sessions of the vGPU share. */
    public SharedNames names() {
        return names;
    }

    /**
     * Begins: sends WELCOME and receives the guest's records. Session thread.
     *
     * @param callDispatcher serves the described functions.
     * @param descriptionHash hash of the description that it was generated from.
     */
    public void start(CallDispatcher callDispatcher, long descriptionHash) {
        dispatcher = callDispatcher;
        order.use(work, callDispatcher);
        work.use(callDispatcher);
        backend.setPolled(false); // until the link polls
        backend.output(new DeviceOutput(completions, outbox)::accept);
        if (moving.arrival() == null) {
            outbox.welcome(options.sessionId(), backend.deviceCount(), credit.windowBytes(), descriptionHash,
                options.mayLeave());
            outbox.answer(options.answer());
            outbox.flush();
            link.open(this);
        } else {
            moving.arrival().begin(this);
        }
        LOG.log(isWarmUp() ? Level.DEBUG : Level.INFO, "session {0} begins: vgpu={1} peer={2} program={3}", id(),
            options.vgpu(), LogText.clean(options.peer()), LogText.clean(options.program()));
    }

    private boolean isWarmUp() {
        return options.sessionId() == WARM_UP;
    }

    CallDispatcher dispatcher() {
        return dispatcher;
    }

    /** Number of the session, for logs. */
    public String id() {
        return Long.toString(options.sessionId());
    }

    /** The low half of its number at the broker, as an event's page names it. */
    public int number() {
        return (int) options.sessionId();
    }

    @Override
    public boolean admit(RecordHeader header) {
        if (ended) {
            return false;
        }
        residence.touch(); // before memory for the record, which can need the driver
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
        moving.begin(call, header, bytes, offset);
        try {
            if (ControlRecords.isRequest(header.opcode())) {
                ControlRecords.serve(this, call, header);
            } else if (objects.switchContext(call, header.context())) {
                order.dispatch(header.opcode(), call);
            }
            if (call.result() != 0 && !ended) {
                dispatcher.failed(header.opcode(), call);
            }
        } catch (RuntimeException | StackOverflowError | LinkageError e) {
            // A defect of the worker, or of a backend that an image made to cause it has triggered.
            LOG.log(Level.ERROR, "session " + id() + ": a call failed inside the worker: opcode=0x"
                + Integer.toHexString(header.opcode()), e);
            end("internal error: " + e, true, CudaResult.UNKNOWN);
        }
        if (call.isInterrupted() && !ended) {
            idleCalls.push(call);
            return order.putBack(header, bytes, offset);
        }
        if (dispatcher.needsTurn(header.opcode(), bytes, offset)) {
            turns.issued(call.lastStream());
        }
        settleCredit(call, header);
        if (!ended && !call.isEnded() && !call.isDeferred()) {
            end("internal error: a call must end or be deferred: opcode=0x" + Integer.toHexString(header.opcode()),
                true, CudaResult.UNKNOWN);
        }
        boolean keeps = call.keepsMemory();
        if (call.waitsForMemory()) {
            memoryWaits.add(order.setAside(header, bytes, offset));
        }
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

    /** Runs a task after a delay in milliseconds, unless the session has ended by then. */
    public void serveLater(Runnable task, long delayMs) {
        link.schedule(() -> {
            if (!ended) {
                task.run();
                settleAndFlush();
            }
        }, delayMs);
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
    public void setPolled(boolean polled) {
        isPolled = polled;
        if (!polled) {
            if (!ended) {
                turns.markAll(); // while this thread sleeps, the broker must learn of launches that end
                wakeForTurn(true);
            }
            backend.seal(); // work that only this thread polls gets an event, which another thread polls
        }
        backend.setPolled(polled);
    }

    private void settleAndFlush() {
        completions.begin();
        do {
            if (completions.isWaiting()) {
                backend.seal(); // the actions may issue more work
                completions.run();
            }
            order.settle();
            if (!ended) {
                turns.served(isPolled);
            }
        } while (completions.isWaiting());
        completions.end();
        if (!isPolled && !ended) {
            wakeForTurn(false);
        }
        flush();
    }

    /** Wakes the session thread when its turn has come, because the thread does not poll. */
    private void wakeForTurn(boolean polls) {
        if (turns.isWaiting()) {
            seat.wake(polls && turns.spins(), link, this::settleAndFlush);
        }
    }

    private void flush() {
        if (!ended && !moving.isAway() && credit.isReportDue()) {
            outbox.credit(credit.report());
        }
        outbox.flush();
        if (!ended && outbox.unreadBytes() > Outbox.MAX_UNREAD_BYTES) {
            link.pauseUntilRead(); // the guest sends requests but does not read the replies
        }
    }

    @Override
    public void gone(String reason) {
        end(reason, false, 0);
        link.close();
    }

    /**
     * Ends the session: serves no more records, releases waiting streams, and sends the reason to the guest.
     *
     * @param reason one line.
     * @param error true after a failure.
     * @param lostResult CUresult that the guest's calls return from now on; 0 when no guest is connected.
     */
    public void end(String reason, boolean error, int lostResult) {
        if (ended) {
            return;
        }
        ended = true;
        LOG.log(error ? Level.WARNING : isWarmUp() ? Level.DEBUG : Level.INFO, "session {0} ends: {1}", id(),
            LogText.clean(reason));
        link.discard();
        callbacks.cancel();
        graphCallbacks.cancel();
        if (dispatcher != null) {
            dispatcher.end();
        }
        work.cancel();
        order.drop(credit);
        if (moving.isAway()) {
            link.close(); // the guest is another worker's
        } else if (lostResult != 0) {
            outbox.lost(lostResult, reason);
            outbox.flush();
            link.leave();
        }
        listener.ended(reason, error);
    }

    /** Frees all objects of the session, after {@link #end}. Returns the resources that are left, normally none. */
    public Leftovers close() {
        for (Call call : Set.copyOf(deferredCalls)) {
            call.abandon();
        }
        objects.close();
        return leftovers();
    }

    /**
     * Returns the staging memory to the backend; memory of running work follows when that work ends. Session thread,
     * after the link's end.
     *
     * @param whenAllIsBack runs on the session thread when no staging memory is in use any more.
     */
    public void freeStaging(Runnable whenAllIsBack) {
        link.dropPartial();
        pool.close(() -> graphCallbacks.freeStaging(whenAllIsBack));
    }

    /** The resources that the session holds now. */
    public Leftovers leftovers() {
        return new Leftovers(objects.handles().size(), objects.usedBytes(), pool.usedBytes(),
            deferredCalls.size(), credit.outstandingBytes());
    }

    /** Finishes a call: sends its reply, or keeps its error for a later call. */
    void finished(Call call, int result) {
        if (ended || moving.finished(call, result)) {
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
        if (result == 0 && work.isCopying() && dispatcher.tellsProgress(call.opcode())) {
            backend.pass(); // the data of copies that are done must precede the reply
            completions.run();
        }
        if (result == 0) {
            outbox.append(call.reply(), call.reply().end());
        } else {
            outbox.reply(call.opcode(), call.sequence(), call.thread(), call.context(), result);
        }
    }

    /** Keeps an error that no reply can carry; 0 for none. A later synchronising call returns the first such error. */
    public void deferError(int result) {
        if (deferredError.keep(result)) {
            LOG.log(Level.DEBUG, "session {0}: deferred error: CUresult={1}", id(), result);
        }
    }

    /**
     * Tells the guest that the record of an event by a request is reached. After an error the guest must ask.
     *
     * @param status CUresult of the stream's work up to the record.
     */
    public void reached(long eventId, long sequence, int status) {
        if (!ended && status == 0 && !deferredError.isKept()) {
            outbox.reached(eventId, sequence);
        }
    }

    /** The result of a synchronising call: its own error, or the deferred one, which it returns only once. */
    int synchronised(int result) {
        return deferredError.take(result);
    }

    /** Takes a deferred call back, for reuse. */
    void recycle(Call call) {
        deferredCalls.remove(call);
        idleCalls.push(call);
    }

    boolean isSessionThread() {
        return link.isSessionThread();
    }

    boolean isLost() {
        return isLost;
    }

    RecordOrder order() {
        return order;
    }

    Link link() {
        return link;
    }

    CreditWindow credit() {
        return credit;
    }

    /** The error that no reply has carried yet; 0 for none. */
    int keptError() {
        return deferredError.kept();
    }

    /** The guest's objects. */
    public GuestObjects objects() {
        return objects;
    }

    /** Work that waits in streams. */
    public StreamWork work() {
        return work;
    }

    /** Host functions of streams. */
    public Callbacks callbacks() {
        return callbacks;
    }

    /** Graph nodes that call the guest. */
    public GraphCallbacks graphCallbacks() {
        return graphCallbacks;
    }

    /** Unfinished host functions, and work that must wait for them. */
    public Gates gates() {
        return gates;
    }

    /** Passes ends of work to the session thread. */
    public Completions completions() {
        return completions;
    }

    /** The GPU. */
    public GpuBackend backend() {
        return backend;
    }

    MemoryWaits memoryWaits() {
        return memoryWaits;
    }

    Outbox outbox() {
        return outbox;
    }

    /** Counts a launch. */
    public void countKernel() {
        kernels++;
    }

    /** Totals for the broker. Session thread. */
    public WorkerMessage.Stats stats() {
        return new WorkerMessage.Stats(calls, replies, replies, receivedBytes, outbox.sentBytes(), refusedRecords,
            objects.usedBytes(), kernels, turns.gpuTimeMs(), turns.waitedMs());
    }
}
