package io.hawser.worker.session;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.Signals;
import io.hawser.worker.channel.DataLanes;
import io.hawser.worker.channel.GuestMemory;
import io.hawser.worker.channel.Outbox;
import io.hawser.worker.channel.RecordCutter;
import io.hawser.worker.memory.StagingPool;
import io.hawser.worker.memory.StagingPool.Staging;
import io.hawser.worker.session.StreamState.Covered;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntConsumer;
import java.util.function.LongToIntFunction;
import java.util.function.ToIntFunction;

/**
 * Work that waits in streams: its credit, its staging memory, and device-to-host data on its way to the guest. It sets
 * a marker ({@link GpuBackend#whenStreamReached}) after a certain amount of work, not for every call. Session thread
 * only.
 */
public final class StreamWork {
    private static final Logger LOG = System.getLogger(StreamWork.class.getName());

    /**
     * Copies up to this size share slabs; larger ones have their own staging memory. All data of a short record goes to
     * a slab, because the record's memory cannot be kept.
     */
    public static final int PACKED_BYTES = RecordCutter.SMALL_RECORD_BYTES;

    private static final int MARKER_FRACTION = 16; // one stream may use 1/16 of the window without a marker
    private static final int SCARCE_FRACTION = 64; // if credit is scarce, all streams may use 1/64 without markers

    private static final int ABANDONED_STREAMS = 32; // so many of a context wait for one marker

    // The GPU copies a piece while the adapter sends the one before: both at once from the second piece on.
    private static final long DIRECT_PIECE_BYTES = 512L << 10;
    // The carrier alone makes a copy from here on. A stream waits until it has, but not until a short copy is sent.
    private static final long LEAST_CARRIED_BYTES = DIRECT_PIECE_BYTES;

    private static final int LEAST_LANE_BYTES = 64 * 1024; // a thread switch costs more than sending a shorter piece

    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING

    private final GpuBackend backend;
    private final Completions completions;
    private final CreditWindow credit;
    private final StagingPool pool;
    private final Outbox outbox;
    private final Gates gates;
    private final Turns turns;
    private final DataBuffers buffers;
    private final WaitWords waitWords;
    private final Set<StreamState> unmarked = new LinkedHashSet<>();
    private final Set<StreamState> behindGate = new LinkedHashSet<>(); // streams with entries that no marker covers
    private long unmarkedBytes; // credit of all these streams
    private int copies; // from and to the guest, whose calls have no reply yet
    private final Map<DeviceRead, Gates.Gate> reads = new HashMap<>(); // the reads that streams wait for
    private final Map<AwaitedCopy, Gates.Gate> awaited = new HashMap<>(); // other copies that streams wait for
    private final Map<Long, ArrayDeque<Long>> sideStreams = new HashMap<>(); // idle ones, by native context
    private final Map<Long, StreamState> readStreams = new HashMap<>(); // by native context
    private final Map<Long, Abandoned> abandoned = new HashMap<>(); // by native context

    /** Resources of destroyed streams that no marker covers. */
    private static final class Abandoned {
        private final List<Covered> streams = new ArrayList<>(ABANDONED_STREAMS);
        private long bytes; // credit of all these streams
    }

    private CallDispatcher dispatcher;
    private DeviceArena slabs;
    private LongToIntFunction enter = context -> CudaResult.INVALID_CONTEXT;

    /**
     * Starts without work.
     *
     * @param backend does the work.
     * @param completions passes ends of work to the session thread.
     * @param credit the session's window.
     * @param pool allocates staging memory.
     * @param outbox takes data for the guest.
     * @param gates records which work waits for the guest.
     * @param turns receives the ends of launches.
     */
    StreamWork(GpuBackend backend, Completions completions, CreditWindow credit, StagingPool pool, Outbox outbox,
        Gates gates, Turns turns) {
        this.backend = backend;
        this.completions = completions;
        this.credit = credit;
        this.pool = pool;
        this.outbox = outbox;
        this.gates = gates;
        this.turns = turns;
        this.buffers = new DataBuffers(pool);
        this.waitWords = new WaitWords(backend.signals());
    }

    /** Sets the dispatcher, which classifies calls. Call it before the first record. */
    void use(CallDispatcher described) {
        dispatcher = described;
    }

    /** Sets the memory of which the carrier may use parts. Call it before the first record. */
    void use(DeviceArena arena) {
        slabs = arena;
    }

    /** Issues a copy of staging memory to the device. Returns a CUresult. */
    int copy(MemorySegment source, long device, StreamState stream) {
        return backend.copyHtoD(device, source, stream.stream());
    }

    /**
     * Charges a record's credit to a stream; it is released when the record's work is done.
     *
     * @param stream the work's stream.
     * @param bytes the record's length.
     */
    void charge(StreamState stream, long bytes) {
        if (!stream.hasUnmarked()) {
            unmarked.add(stream);
        }
        stream.charge(bytes);
        unmarkedBytes += bytes;
        if (stream.unmarkedBytes() >= credit.windowBytes() / MARKER_FRACTION) {
            mark(stream);
        }
        if (unmarkedBytes >= credit.windowBytes() / SCARCE_FRACTION && credit.isScarce()) {
            markAll();
        }
    }

    /** Sets a marker on every stream that has work without one. */
    private void markAll() {
        for (StreamState stream : Set.copyOf(unmarked)) {
            mark(stream);
        }
    }

    /** Sets a marker behind all work of a stream. */
    void mark(StreamState stream) {
        unmarked.remove(stream);
        if (stream.hasUnmarked()) {
            Covered covered = stream.cover();
            unmarkedBytes -= covered.bytes();
            whenReached(stream, status -> release(covered));
        }
    }

    /**
     * Takes note of a call on a stream, before it is made. While a gate is open, the session must learn when the work
     * behind it ends: see {@link Gates#MAX_BEHIND}.
     *
     * @param stream the stream.
     * @param opcode the call's.
     */
    void uses(StreamState stream, int opcode) {
        if (!gates.isOpen()) {
            return;
        }
        if (dispatcher.issuesWork(opcode)) {
            issued(stream, 1);
        } else {
            markEntries(stream); // the call may destroy the stream
        }
    }

    /**
     * Counts entries of a stream's queue that a call makes beyond its first.
     *
     * @param stream the call's stream.
     * @param entries their number.
     */
    public void issued(StreamState stream, long entries) {
        if (gates.isOpen()) {
            if (gates.issued(entries)) {
                Set.copyOf(behindGate).forEach(this::markEntries);
            }
            behindGate.add(stream);
            stream.enter(entries); // made after the markers
        }
    }

    private void markEntries(StreamState stream) {
        if (behindGate.remove(stream)) {
            long entries = stream.takeEntries();
            whenReached(stream, status -> gates.ended(entries));
            backend.seal();
        }
    }

    /**
     * Gives up a stream that is about to be destroyed. Its resources without a marker are released when all work of its
     * context so far is done. A marker of a context costs more than a short copy. So the resources of several streams
     * wait for one marker, unless they are many or a launch is running.
     *
     * @param stream the stream; the backend may no longer know its handle.
     */
    void abandon(StreamState stream) {
        turns.copies().forget(stream);
        unmarked.remove(stream);
        if (behindGate.remove(stream)) { // no gate is open, or the context has gone
            gates.ended(stream.takeEntries());
        }
        if (!stream.hasUnmarked() && !stream.isRunning()) {
            return;
        }
        Covered covered = stream.cover();
        unmarkedBytes -= covered.bytes();
        Abandoned waiting = abandoned.computeIfAbsent(stream.context(), key -> new Abandoned());
        waiting.streams.add(covered);
        waiting.bytes += covered.bytes();
        if (!stream.isRunning() && waiting.streams.size() < ABANDONED_STREAMS
            && waiting.bytes < credit.windowBytes() / SCARCE_FRACTION) {
            return;
        }
        abandoned.remove(stream.context());
        long launches = stream.watch();
        Runnable gone = () -> {
            turns.reached(stream, launches);
            waiting.streams.forEach(this::release);
        };
        int result = backend.whenContextReached(stream.context(), status -> completions.add(gone));
        if (result != 0) {
            completions.add(gone);
        }
    }

    private void release(Covered covered) {
        credit.release(covered.bytes());
        covered.staging().forEach(pool::give);
    }

    /**
     * Runs an action on the session thread once all work issued to a stream so far is done or has failed.
     *
     * @param stream the stream.
     * @param action receives the CUresult.
     */
    public void whenReached(StreamState stream, IntConsumer action) {
        long launches = stream.watch();
        int result = backend.whenStreamReached(stream.context(), stream.stream(),
            status -> completions.add(() -> {
                turns.reached(stream, launches);
                action.accept(status);
            }));
        if (result != 0) {
            completions.add(() -> {
                turns.reached(stream, launches);
                action.accept(result);
            });
        }
    }

    /**
     * Copies a record's data to the device in stream order.
     *
     * @param call its record holds the data; large data stays in place until the copy is done.
     * @param stream the stream.
     * @param destination checked device address.
     * @param data part of the call's record.
     * @return CUresult of issuing it.
     */
    public int write(Call call, StreamState stream, long destination, MemorySegment data) {
        MemorySegment stable = stabilise(call, stream, data);
        return stable == null ? CudaResult.OUT_OF_MEMORY
            : backend.copyHtoD(destination, stable, stream.stream());
    }

    /**
     * Keeps data of a record in memory until the stream's work so far and its next work are done.
     *
     * @param call its record holds the data.
     * @param stream the stream that will read the data.
     * @param data part of the call's record.
     * @return the data in stable memory, or null when no memory is left.
     */
    public MemorySegment stabilise(Call call, StreamState stream, MemorySegment data) {
        if (data.byteSize() <= PACKED_BYTES) {
            unmarked.add(stream);
            return stream.pack(data, pool);
        }
        Staging memory = call.keepMemory();
        if (memory != null) { // null: an earlier piece of the same call has kept the memory
            stream.hold(memory);
            unmarked.add(stream);
        }
        return data;
    }

    /**
     * Runs a function in stream order.
     *
     * @param stream the stream; its context is current.
     * @param function may block.
     * @return CUresult of issuing it.
     */
    public int hostFunction(StreamState stream, Runnable function) {
        return backend.hostFunction(stream.stream(), function);
    }

    /**
     * Sends device memory to the guest in DATA records, followed by the call's reply. Does not wait. DATA of a long
     * copy goes by lanes, where there are any.
     *
     * @param call the request; this method defers it.
     * @param stream the stream.
     * @param bytes length, 0 for none.
     * @param pieceBytes length of each piece except the last; at most MAX_BULK_BYTES.
     * @param reader issues the copies.
     */
    public void read(Call call, StreamState stream, long bytes, long pieceBytes, PieceReader reader) {
        read(call, stream, bytes, pieceBytes, reader, null);
    }

    /**
     * Writes device memory straight to the guest's, and then sends the call's reply. Does not wait.
     *
     * @param call the request; this method defers it.
     * @param stream the stream.
     * @param device checked device address.
     * @param bytes length, 0 for none.
     * @param place the guest's memory, where {@link #guestMemory} is not null.
     */
    public void readInto(Call call, StreamState stream, long device, long bytes, GuestPlace place) {
        if (bytes < LEAST_CARRIED_BYTES || !carry(call, stream, device, bytes, place, false)) {
            read(call, stream, bytes, DIRECT_PIECE_BYTES,
                (destination, offset, through) -> backend.copyDtoH(destination, device + offset, through), place);
        }
    }

    private void read(Call call, StreamState stream, long bytes, long pieceBytes, PieceReader reader,
        GuestPlace place) {
        defer(call);
        new DeviceRead(this, call, stream, bytes, pieceBytes, reader, place).begin();
    }

    /**
     * Copies the guest's memory to the device when the stream reaches the copy, and then sends the call's reply. Does
     * not wait.
     *
     * @param call the request; this method defers it.
     * @param stream the stream.
     * @param device checked device address.
     * @param bytes length, over 0; the slots serve it.
     * @param place the guest's memory, where {@link #guestMemory} is not null.
     * @param slots for pieces on their way; no other copy uses them before the stream's work so far has ended.
     */
    public void writeFrom(Call call, StreamState stream, long device, long bytes, GuestPlace place,
        DeviceWrite.Slots slots) {
        if (!carry(call, stream, device, bytes, place, true)) {
            defer(call);
            new DeviceWrite(this, call, stream, device, bytes, place, slots).begin();
        }
    }

    /** Begins a copy from or to the guest, which {@link #ended} ends. */
    private void defer(Call call) {
        call.deferWithoutRecord();
        copies++;
    }

    /** Lets the carrier make a copy alone, where it can; returns whether it does. */
    private boolean carry(Call call, StreamState stream, long device, long bytes, GuestPlace place,
        boolean toDevice) {
        List<DeviceArena.Carried> parts = slabs.carried(device, bytes);
        if (parts.isEmpty()) {
            return false;
        }
        defer(call);
        new DirectCopy(this, slabs, call, stream, place, parts, toDevice).begin();
        return true;
    }

    /** Announces further work, which the markers of earlier {@link #whenReached} calls do not cover. */
    void seal() {
        backend.seal();
    }

    /** Lets stripes or the like carry the data of long copies. */
    public void useLanes(DataLanes lanes) {
        outbox.useLanes(lanes);
    }

    /** Memory of the guest that the carrier writes by itself; null where it cannot. */
    public GuestMemory guestMemory() {
        return outbox.guestMemory();
    }

    /**
     * Writes a piece to the guest's memory.
     *
     * @return CUresult; on an error the buffer has been given back.
     */
    int write(GuestPlace place, long offset, DataBuffers.Buffer buffer, int bytes) {
        try {
            guestMemory().write(place.address() + offset, place.key(), buffer.staging().segment(), 0, bytes,
                () -> buffers.give(buffer));
            return 0;
        } catch (IOException e) {
            LOG.log(Level.WARNING, "staging memory cannot be registered for RDMA: {0}", e.getMessage());
            buffers.give(buffer);
            return CudaResult.OUT_OF_MEMORY;
        }
    }

    /** Sends a piece, and gives its buffer back once it has been sent. */
    void send(Call call, long offset, DataBuffers.Buffer buffer, int bytes) {
        outbox.data(call.sequence(), offset, buffer.staging(), bytes, () -> buffers.give(buffer));
    }

    /**
     * Sends a piece as {@link #send} does, but by lanes if that is possible.
     *
     * @return whether it goes by lanes, so that the copy must end with {@link #awaitData}.
     */
    boolean sendByLanes(Call call, long offset, DataBuffers.Buffer buffer, int bytes) {
        if (bytes < LEAST_LANE_BYTES || !outbox.hasLanes()) {
            send(call, offset, buffer, bytes);
            return false;
        }
        outbox.dataByLanes(call.sequence(), offset, buffer.staging(), bytes,
            () -> completions.add(() -> buffers.give(buffer)));
        return true;
    }

    /** Lets later records wait for the data of a copy of which this many bytes have been sent, and no more follow. */
    void awaitData(Call call, long bytes) {
        outbox.awaitData(call.sequence(), bytes);
    }

    WaitWords waitWords() {
        return waitWords;
    }

    DataBuffers buffers() {
        return buffers;
    }

    Completions completions() {
        return completions;
    }

    /** Whether the bytes of a copy from or to the guest may still have to travel. */
    boolean isCopying() {
        return copies != 0;
    }

    /** Ends a copy from or to the guest: sends the reply to its call. */
    void ended(Call call, int result) {
        copies--;
        call.finishSynchronised(result);
    }

    /** Opens a gate, because a stream waits for a copy. */
    void opened(DeviceRead read, StreamState stream) {
        issued(stream, Signals.AWAIT_ENTRIES);
        reads.put(read, gates.open());
    }

    /**
     * Opens a gate, because a stream waits for a copy by the carrier.
     *
     * @param entries of the stream's queue that the copy has made.
     */
    void opened(AwaitedCopy copy, StreamState stream, long entries) {
        awaited.put(copy, gates.open());
        issued(stream, entries); // they are behind this gate
    }

    /** Closes the gate, because the stream no longer waits. */
    void closed(AwaitedCopy copy) {
        close(awaited.remove(copy));
    }

    private void close(Gates.Gate gate) {
        if (gate != null) {
            gates.close(gate);
        }
    }

    /**
     * Whether a stream waits for a copy to the guest. Then no other stream may copy to the host: the streams of
     * NVIDIA's driver share a few queues for these copies (580.159, H100), and a copy behind the wait would stop the
     * queue that the awaited copy needs.
     */
    boolean isReading() {
        return !reads.isEmpty();
    }

    /** Closes the gate, because the stream no longer waits for the copy. */
    void closed(DeviceRead read) {
        close(reads.remove(read));
    }

    /** Sets the function that makes a context current outside a guest's call; the next call switches again. */
    void enterBy(LongToIntFunction how) {
        enter = how;
    }

    int enter(long context) {
        return enter.applyAsInt(context);
    }

    /**
     * Makes the context's stream for reads, unless there is one. It copies for reads that let their own stream wait
     * ({@link DeviceRead}).
     *
     * @param context native context.
     * @return CUresult.
     */
    int prepareReads(long context) {
        if (!readStreams.containsKey(context)) {
            long made = createStream(context);
            if (made < 0) {
                return (int) -made;
            }
            readStreams.put(context, new StreamState(context, made));
        }
        return 0;
    }

    /** The stream that {@link #prepareReads} has made. */
    StreamState readStream(long context) {
        return readStreams.get(context);
    }

    /** A native stream of a context that does not synchronise with other streams; a negated CUresult on failure. */
    private long takeSideStream(long context) {
        ArrayDeque<Long> idle = sideStreams.get(context);
        return idle != null && !idle.isEmpty() ? idle.pop() : createStream(context);
    }

    private long createStream(long context) {
        int entered = enter(context);
        if (entered != 0) {
            return -entered;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            int result = backend.driver().cuStreamCreateWithPriority(out, NON_BLOCKING, 0);
            return result == 0 ? out.get(ValueLayout.JAVA_LONG, 0) : -result;
        }
    }

    /** Takes back an idle side stream. */
    private void giveSideStream(long context, long stream) {
        sideStreams.computeIfAbsent(context, key -> new ArrayDeque<>()).push(stream);
    }

    /**
     * Issues work in a stream that does not synchronise with other streams.
     *
     * @param context native context.
     * @param issuer issues the work and returns a CUresult.
     * @return CUresult.
     */
    public int inSideStream(long context, ToIntFunction<StreamState> issuer) {
        long taken = takeSideStream(context);
        if (taken < 0) {
            return (int) -taken;
        }
        StreamState side = new StreamState(context, taken);
        int result = issuer.applyAsInt(side);
        whenReached(side, status -> giveSideStream(context, taken));
        return result;
    }

    /** Drops our own streams of a context, which were destroyed with it, and the resources of abandoned streams. */
    void forget(long context) {
        sideStreams.remove(context);
        readStreams.remove(context);
        Abandoned waiting = abandoned.remove(context);
        if (waiting != null) {
            waiting.streams.forEach(this::release);
        }
    }

    /** Releases every waiting stream: the session is over. */
    void cancel() {
        List.copyOf(reads.keySet()).forEach(DeviceRead::open);
        List.copyOf(awaited.keySet()).forEach(AwaitedCopy::open);
    }
}
