package io.hawser.worker.session;

import io.hawser.cuda.CallContext;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordReader;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.channel.RecordHeader;
import io.hawser.worker.memory.StagingPool.Staging;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * A request in service. The object is reused for later requests. Session thread; after {@link #defer} any thread may
 * call {@link #finish}.
 */
public final class Call implements CallContext {
    private static final Logger LOG = System.getLogger(Call.class.getName());
    private static final ValueLayout.OfInt I32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong I64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final int REPLY_CAPACITY_BYTES = 64;
    private static final int SCRATCH_BYTES = 4096;
    private static final long SCRATCH_ALIGNMENT = 16; // of cuDoubleComplex, the strictest of CUDA's types
    private static final long MAX_SCRATCH_BYTES = 1L << 20; // bounds the size of outputs that a guest may ask for

    private final Session session;
    private final RecordReader in = new RecordReader();
    private final RecordWriter reply = new RecordWriter(REPLY_CAPACITY_BYTES);

    private MemorySegment scratch; // allocated at the first use
    private MemorySegment record;
    private long recordOffset;
    private int lengthBytes;
    private Staging memory; // the record's memory, when the call may keep it
    private boolean keepsMemory;
    private int opcode;
    private long sequence;
    private int thread;
    private int context;
    private boolean wantsReply;
    private long scratchUsed;
    private StreamState lastStream;
    private Handle lastObject;
    private boolean replyBegun;
    private int result;
    private int invalidValue;
    private int invalidHandle;
    private boolean ended;
    private boolean answered; // a captured call
    private boolean deferred;
    private boolean interrupted;
    private boolean mayWait; // for memory: the record can be served again
    private boolean waits; // found no memory; the session serves the record again
    private Journal.Entry entry; // of the journal, while the call is in service; null for none
    private Handle made; // the object that it has made; null for none
    private Capture capture; // null: the record came from the guest by itself

    /** A stream that captures what a call does, and the memory that the call's checks have allowed. */
    private static final class Capture {
        private final long stream;
        private final List<GraphParameters.Range> ranges = new ArrayList<>();
        private GraphState.Waits waits = GraphState.Waits.FOR_NOTHING;

        Capture(long stream) {
            this.stream = stream;
        }
    }

    /**
     * Makes a call for {@link #begin}.
     *
     * @param session the session that it belongs to.
     */
    Call(Session session) {
        this.session = session;
    }

    /**
     * Starts to serve a record.
     *
     * @param own the record's memory when it holds only this record; the receiver owns it until {@link #keepsMemory()};
     *     null when this call cannot keep the record.
     */
    void begin(RecordHeader header, MemorySegment bytes, long offset, Staging own) {
        record = bytes;
        recordOffset = offset;
        lengthBytes = header.lengthBytes();
        memory = own;
        keepsMemory = false;
        opcode = header.opcode();
        sequence = header.sequence();
        thread = header.thread();
        context = header.context();
        wantsReply = header.wantsReply();
        scratchUsed = 0;
        lastStream = null;
        lastObject = null;
        ended = false;
        deferred = false;
        interrupted = false;
        mayWait = wantsReply && !header.isCredited();
        waits = false;
        answered = false;
        result = 0;
        entry = null;
        made = null;
        invalidValue = CudaResult.INVALID_VALUE;
        invalidHandle = CudaResult.INVALID_HANDLE;
        in.wrap(bytes, offset, lengthBytes);
        replyBegun = false;
    }

    /** Whether {@link #serveInner} can serve a function. */
    public boolean isCapturable(int innerOpcode) {
        return session.dispatcher().isCapturable(innerOpcode);
    }

    /**
     * Serves the call of a library whose record this call carries. The inner call sees a stream of the worker in place
     * of the guest's, costs no credit, and sends no reply.
     *
     * @param innerOpcode the library's function; {@link #isCapturable}.
     * @param payload its record without the header, a multiple of 8 bytes.
     * @param stream the backend's stream, which captures.
     * @return the ended call; not {@link #isAnswered} when it has ended the session.
     */
    public Call serveInner(int innerOpcode, MemorySegment payload, long stream) {
        int bytes = Math.toIntExact(RecordLayout.HEADER_BYTES + payload.byteSize());
        MemorySegment whole = Arena.ofAuto().allocate(bytes, RecordLayout.ALIGNMENT_BYTES);
        whole.set(I32, RecordLayout.LENGTH_OFFSET, bytes);
        whole.set(I32, RecordLayout.OPCODE_OFFSET, innerOpcode);
        whole.set(I64, RecordLayout.SEQUENCE_OFFSET, sequence);
        whole.set(I32, RecordLayout.THREAD_OFFSET, thread);
        whole.set(I32, RecordLayout.CONTEXT_OFFSET, context);
        whole.set(I32, RecordLayout.FLAGS_OFFSET, RecordLayout.FLAG_REPLY | RecordLayout.FLAG_CREDITED);
        whole.asSlice(RecordLayout.HEADER_BYTES).copyFrom(payload);
        RecordHeader header = new RecordHeader();
        header.read(whole, 0);
        Call inner = new Call(session);
        inner.begin(header, whole, 0, null);
        inner.capture = new Capture(stream);
        session.dispatcher().dispatch(innerOpcode, inner);
        if (inner.deferred) {
            throw new IllegalStateException("a captured call must end at once: opcode=0x"
                + Integer.toHexString(innerOpcode));
        }
        return inner;
    }

    /** Whether its work becomes a part of a graph: it is not executed now. */
    public boolean isCaptured() {
        return capture != null;
    }

    /** Counts a call that launches kernels by a library; a captured call launches none. */
    public void countKernel() {
        if (!isCaptured()) {
            session.countKernel();
        }
    }

    /** Whether a captured call has a {@link #result}. */
    public boolean isAnswered() {
        return answered;
    }

    /** Records that the kernels of a captured call wait for other ranks of NCCL. */
    public void captureWaits(GraphState.Waits waits) {
        capture.waits = waits;
    }

    /** Returns what the kernels of a captured call wait for. */
    public GraphState.Waits waits() {
        return capture.waits;
    }

    /** The memory that the checks of a captured call have allowed. */
    public List<GraphParameters.Range> ranges() {
        return List.copyOf(capture.ranges);
    }

    /** Outputs of a captured call: the payload of the reply that the guest would get. */
    public MemorySegment outputs() {
        return replyBegun ? reply.memory().asSlice(RecordLayout.HEADER_BYTES,
            reply.end() - RecordLayout.HEADER_BYTES) : MemorySegment.NULL;
    }

    @Override
    public RecordReader in() {
        return in;
    }

    @Override
    public int thread() {
        return thread;
    }

    @Override
    public int context() {
        return context;
    }

    @Override
    public long sequence() {
        return sequence;
    }

    @Override
    public boolean wantsReply() {
        return wantsReply;
    }

    int opcode() {
        return opcode;
    }

    /** Sets the entry that the journal keeps if the call succeeds; null for none. */
    void use(Journal.Entry draft) {
        entry = draft;
    }

    Journal.Entry entry() {
        return entry;
    }

    /** Tells the journal which staged image the call has used up. */
    public void usesImage(String digest) {
        if (entry != null) {
            entry.useImage(digest);
        }
    }

    /** Lets the journal keep the call until {@link Journal#forget} gets this number, which is no handle's. */
    public void keepUntil(long number) {
        if (entry != null) {
            entry.tieTo(number);
        }
    }

    /** Tells the journal that the call leaves nothing that another worker needs. */
    public void leavesNothing() {
        entry = null;
    }

    /** Notes the object that the call has made. */
    void make(Handle object) {
        made = object;
    }

    Handle made() {
        return made;
    }

    @Override
    public long handle(HandleKind kind, long id) {
        if (kind == HandleKind.STREAM && capture != null) {
            return capture.stream;
        }
        if (kind == HandleKind.STREAM) {
            StreamState stream = stream(id);
            return stream == null ? 0 : stream.stream();
        }
        Handle handle = object(kind, id);
        if (handle != null) {
            lastObject = handle;
        }
        return handle == null ? 0 : handle.nativeHandle();
    }

    /**
     * The handle that was resolved last, streams excepted.
     *
     * @return never null in a manual call that has such a parameter.
     */
    public Handle lastObject() {
        return lastObject;
    }

    /** As {@link #handle}, but returns the session's record of the object; null when this has ended the call. */
    Handle object(HandleKind kind, long id) {
        if (ended) {
            return null;
        }
        Handle handle = session.objects().handles().find(kind, id);
        if (handle == null && !session.objects().handles().wasCreated(kind, id)) {
            fatal("a handle must have been created with its kind: kind=" + kind + " id=0x" + Long.toHexString(id));
            return null;
        }
        if (handle == null || handle.isFailed()) {
            fail(kind == HandleKind.CONTEXT ? CudaResult.INVALID_CONTEXT : invalidHandle);
            return null;
        }
        return handle;
    }

    /** Resolves a stream. The record's credit then waits for work of this stream. Null when the call has ended. */
    private StreamState stream(long id) {
        if (ended) {
            return null;
        }
        StreamState stream = session.objects().streams().resolve(this, id);
        if (stream != null) {
            lastStream = stream;
            session.work().uses(stream, opcode);
        }
        return stream;
    }

    /**
     * The stream that was resolved last. The record's credit waits for its work.
     *
     * @return null when the record names no stream; never null in a manual call with such a parameter.
     */
    public StreamState lastStream() {
        return lastStream;
    }

    @Override
    public void register(HandleKind kind, long id, long nativeHandle) {
        mayWait = false;
        session.objects().register(this, kind, id, nativeHandle);
    }

    @Override
    public void registerFailed(HandleKind kind, long id) {
        mayWait = false;
        session.objects().register(this, kind, id, 0);
    }

    @Override
    public void drop(HandleKind kind, long id) {
        session.objects().drop(kind, id);
    }

    @Override
    public boolean checkDevice(long address, long bytes) {
        if (ended) {
            return false;
        }
        if (!session.objects().allocations().contains(address, bytes)) {
            fail(invalidValue);
            return false;
        }
        if (capture != null && bytes > 0) {
            capture.ranges.add(new GraphParameters.Range(address, bytes));
        }
        return true;
    }

    @Override
    public MemorySegment object(String type, MemorySegment content) {
        return session.dispatcher().object(this, type, content);
    }

    @Override
    public MemorySegment number(MemorySegment content, long bytes) {
        return session.dispatcher().number(this, content, bytes);
    }

    @Override
    public MemorySegment workspace(long bytes) {
        return session.dispatcher().workspace(this, bytes);
    }

    @Override
    public void answerIn(int wrongValue, int wrongHandle) {
        invalidValue = wrongValue;
        invalidHandle = wrongHandle;
        mayWait = false; // the results are not those of memory calls
    }

    /** Whether the result is another library's. */
    boolean isLibraryCall() {
        return invalidHandle != CudaResult.INVALID_HANDLE;
    }

    @Override
    public MemorySegment scratch(long bytes) {
        if (bytes < 0 || bytes > MAX_SCRATCH_BYTES) {
            fatal("outputs of a call must not exceed " + MAX_SCRATCH_BYTES + ": bytes=" + bytes);
            return Arena.ofAuto().allocate(SCRATCH_ALIGNMENT, SCRATCH_ALIGNMENT);
        }
        long aligned = bytes + SCRATCH_ALIGNMENT - 1 & -SCRATCH_ALIGNMENT;
        if (aligned > SCRATCH_BYTES - scratchUsed) {
            return Arena.ofAuto().allocate(Math.max(aligned, SCRATCH_ALIGNMENT), SCRATCH_ALIGNMENT);
        }
        if (scratch == null) {
            scratch = Arena.ofAuto().allocate(SCRATCH_BYTES, SCRATCH_ALIGNMENT);
        }
        MemorySegment part = scratch.asSlice(scratchUsed, bytes).fill((byte) 0);
        scratchUsed += aligned;
        return part;
    }

    @Override
    public RecordWriter reply() {
        if (!replyBegun) { // most calls have no outputs
            replyBegun = true;
            reply.begin(opcode | RecordLayout.REPLY_BIT, sequence, thread, context, 0);
        }
        return reply;
    }

    @Override
    public boolean isRejected() {
        return ended;
    }

    @Override
    public void fail(int cuResult) {
        if (cuResult == 0) {
            throw new IllegalArgumentException("a failed call must have an error");
        }
        finish(cuResult);
    }

    @Override
    public void fatal(String reason) {
        if (!ended) {
            ended = true;
            session.refuse(reason + " opcode=0x" + Integer.toHexString(opcode) + " sequence="
                + Long.toUnsignedString(sequence));
        }
    }

    @Override
    public void finish(int cuResult) {
        if (!session.isSessionThread()) {
            session.completions().add(() -> finish(cuResult));
            return;
        }
        if (ended) {
            return; // the session or an earlier check has ended the call
        }
        ended = true;
        if (capture != null) {
            answered = true;
            result = cuResult;
            return;
        }
        if (cuResult == CudaResult.OUT_OF_MEMORY && mayWait && !deferred
            && session.memoryWaits().mustWait()) {
            waits = true;
            return;
        }
        result = cuResult;
        session.finished(this, deliverable(cuResult));
        if (deferred) {
            recycle();
        }
    }

    /** The result as a CUresult where no reply carries it: a later call of the driver reports it. */
    private int deliverable(int status) {
        if (status == 0 || wantsReply || !isLibraryCall()) {
            return status;
        }
        LOG.log(Level.WARNING, "session {0}: a library call failed that had succeeded before: opcode=0x{1} status={2}",
            session.id(), Integer.toHexString(opcode), status);
        return CudaResult.UNKNOWN;
    }

    /** Ends this serving of a call whose copy has been issued in part: the session serves its record again. */
    public void interrupt() {
        interrupted = true;
    }

    /** Whether the call goes on when its record is served again. */
    boolean isInterrupted() {
        return interrupted;
    }

    /**
     * As {@link #finish}, for a call that synchronises: it also returns the session's deferred error.
     *
     * @param cuResult the call's own result, which takes precedence.
     */
    public void finishSynchronised(int cuResult) {
        finish(session.synchronised(cuResult));
    }

    @Override
    public void defer() {
        if (deferred || ended) {
            return;
        }
        deferred = true;
        if (memory == null) {
            // A short record shares its memory with others, so the call keeps a copy. Values read from in() as memory
            // before this point become invalid with the record.
            MemorySegment copy = Arena.ofAuto().allocate(lengthBytes, RecordLayout.ALIGNMENT_BYTES);
            in.wrap(copy.copyFrom(record.asSlice(recordOffset, lengthBytes)), 0, lengthBytes);
        } else {
            keepsMemory = true;
        }
    }

    /**
     * As {@link #defer}, for a call that no longer reads its record, so that many calls can wait without holding
     * memory.
     */
    public void deferWithoutRecord() {
        if (!deferred && !ended) {
            deferred = true;
            if (!keepsMemory) {
                memory = null; // the receiver still owns it
            }
        }
    }

    /** Whether the call has been answered, or never will be. */
    boolean isEnded() {
        return ended;
    }

    /**
     * The call's result.
     *
     * @return CUresult; also 0 while the call has not ended.
     */
    public int result() {
        return result;
    }

    /** Answers also when no memory is left, instead of waiting for memory that guests give back. */
    public void answerAtOnce() {
        mayWait = false;
    }

    /** Whether the call found no memory and has not been answered: the session serves its record again. */
    boolean waitsForMemory() {
        return waits;
    }

    boolean isDeferred() {
        return deferred;
    }

    /**
     * Takes the record's memory from the receiver, for work that reads it later. Only once per call.
     *
     * @return the memory, which the caller gives back to the pool; null when it has been taken before.
     */
    public Staging keepMemory() {
        if (keepsMemory || memory == null) {
            return null;
        }
        keepsMemory = true;
        Staging kept = memory;
        memory = null;
        return kept;
    }

    /** Whether the receiver must no longer use the record's memory. */
    boolean keepsMemory() {
        return keepsMemory;
    }

    /** Gives back the memory that a deferred call has kept. */
    private void recycle() {
        if (memory != null) {
            session.giveBack(memory);
            memory = null;
        }
        session.recycle(this);
    }

    /** Abandons a deferred call at the end of the session. */
    void abandon() {
        if (!ended) {
            ended = true;
            recycle();
        }
    }
}
