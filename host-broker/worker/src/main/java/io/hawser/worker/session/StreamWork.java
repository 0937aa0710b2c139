package io.hawser.worker.session;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.worker.channel.Outbox;
import io.hawser.worker.channel.RecordCutter;
import io.hawser.worker.memory.StagingPool;
import io.hawser.worker.memory.StagingPool.Staging;
import io.hawser.worker.session.StreamState.Covered;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntConsumer;
import java.util.function.LongToIntFunction;

/**
 * Work that waits in streams: its credit, its staging memory, and the way of device-to-host data to the guest. Markers
 * ({@link GpuBackend#whenStreamReached}) are set when enough has gathered, not for every call. Session thread only.
 */
public final class StreamWork {
    /**
     * Copies up to this size are packed together in slabs; larger ones have staging memory of their own. All data of a
     * short record is packed, since the record's memory cannot be kept.
     */
    public static final int PACKED_BYTES = RecordCutter.SMALL_RECORD_BYTES;

    private static final int MARKER_FRACTION = 16; // of the window may gather in a stream without a marker
    private static final int SCARCE_FRACTION = 64; // of the window may gather in all of them when credit is scarce

    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING

    private final GpuBackend backend;
    private final Completions completions;
    private final CreditWindow credit;
    private final StagingPool pool;
    private final Outbox outbox;
    private final Gates gates;
    private final Turns turns;
    private final DataBuffers buffers;
    private final Set<StreamState> unmarked = new LinkedHashSet<>();
    private long unmarkedBytes; // credit of all of them
    private final Map<DeviceRead, Gates.Gate> reads = new HashMap<>(); // for which streams wait
    private final Map<Long, ArrayDeque<Long>> sideStreams = new HashMap<>(); // idle ones, by native context
    private LongToIntFunction enter = context -> CudaResult.INVALID_CONTEXT;

    /**
     * Starts with nothing waiting.
     *
     * @param backend does the work.
     * @param completions brings the ends of work to the session thread.
     * @param credit the session's window.
     * @param pool gives staging memory.
     * @param outbox takes data for the guest.
     * @param gates told of what waits for the guest.
     * @param turns told of the ends of launches.
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
    }

    /**
     * Puts a record's credit on a stream: it is released when the work that the record has started is done.
     *
     * @param stream where the work went.
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
     * Gives up a stream that is about to be destroyed: what it has without a marker is released when all work of its
     * context so far is done.
     *
     * @param stream whose handle the backend may no longer know.
     */
    void abandon(StreamState stream) {
        unmarked.remove(stream);
        if (stream.hasUnmarked() || stream.isRunning()) {
            Covered covered = stream.cover();
            unmarkedBytes -= covered.bytes();
            long launches = stream.watch();
            Runnable gone = () -> {
                turns.reached(stream, launches);
                release(covered);
            };
            int result = backend.whenContextReached(stream.context(), status -> completions.add(gone));
            if (result != 0) {
                completions.add(gone);
            }
        }
    }

    private void release(Covered covered) {
        credit.release(covered.bytes());
        covered.staging().forEach(pool::give);
    }

    /**
     * Runs an action on the session thread once all work issued so far to a stream is done or has failed.
     *
     * @param stream the stream.
     * @param action gets the CUresult.
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
     * @param call whose record holds the data; large data stays where it lies until the copy is done.
     * @param stream where.
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
     * Gives data of a record a place in which it stays until the stream's work so far and the next is done.
     *
     * @param call whose record holds the data.
     * @param stream that will read it.
     * @param data part of the call's record.
     * @return the data, or null when there is no memory.
     */
    public MemorySegment stabilise(Call call, StreamState stream, MemorySegment data) {
        if (data.byteSize() <= PACKED_BYTES) {
            unmarked.add(stream);
            return stream.pack(data, pool);
        }
        Staging memory = call.keepMemory();
        if (memory != null) { // null: the call has several pieces, and the first kept it
            stream.hold(memory);
            unmarked.add(stream);
        }
        return data;
    }

    /**
     * Runs a function in stream order.
     *
     * @param stream where.
     * @param function may block.
     * @return CUresult of issuing it.
     */
    public int hostFunction(StreamState stream, Runnable function) {
        return backend.hostFunction(stream.stream(), function);
    }

    /** Reads a piece of device memory into staging memory, in stream order. */
    @FunctionalInterface
    public interface PieceReader {
        /**
         * Issues the copy of a piece.
         *
         * @param destination where; exactly the piece's length.
         * @param offsetBytes of the piece in the copy.
         * @param stream native stream to issue it to.
         * @return CUresult.
         */
        int read(MemorySegment destination, long offsetBytes, long stream);
    }

    /**
     * Sends device memory to the guest in DATA records and then the call's reply. Nothing waits here.
     *
     * @param call the request; deferred by this.
     * @param stream where.
     * @param bytes how much, 0 for none.
     * @param pieceBytes length of each piece but the last; at most MAX_BULK_BYTES.
     * @param reader issues the copies.
     */
    public void read(Call call, StreamState stream, long bytes, long pieceBytes, PieceReader reader) {
        call.deferWithoutRecord();
        new DeviceRead(this, call, stream, bytes, pieceBytes, reader).begin();
    }

    /** Further work is issued that calls of {@link #whenReached} so far do not mean. */
    void seal() {
        backend.seal();
    }

    /** Sends a piece and gives its buffer back when it has left. */
    void send(Call call, long offset, DataBuffers.Buffer buffer, int bytes) {
        outbox.data(call.sequence(), offset, buffer.staging(), bytes, () -> buffers.give(buffer));
    }

    DataBuffers buffers() {
        return buffers;
    }

    Completions completions() {
        return completions;
    }

    /** A stream waits for a copy. */
    void opened(DeviceRead read) {
        reads.put(read, gates.open());
    }

    /** It does not any more. */
    void closed(DeviceRead read) {
        Gates.Gate gate = reads.remove(read);
        if (gate != null) {
            gates.close(gate);
        }
    }

    /** How a context is made current outside of a guest's call; the next call switches again. */
    void enterBy(LongToIntFunction how) {
        enter = how;
    }

    int enter(long context) {
        return enter.applyAsInt(context);
    }

    /** A native stream of a context that synchronises with no other; a negated CUresult when none can be had. */
    long takeSideStream(long context) {
        ArrayDeque<Long> idle = sideStreams.get(context);
        if (idle != null && !idle.isEmpty()) {
            return idle.pop();
        }
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

    /** Takes a side stream back, whose work is done. */
    void giveSideStream(long context, long stream) {
        sideStreams.computeIfAbsent(context, key -> new ArrayDeque<>()).push(stream);
    }

    /** Forgets the side streams of a context that has been destroyed, and they with it. */
    void forget(long context) {
        sideStreams.remove(context);
    }

    /** Lets every stream go on: the session is over. */
    void cancel() {
        List.copyOf(reads.keySet()).forEach(DeviceRead::open);
    }
}
