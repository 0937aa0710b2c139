package io.hawser.interop;

import io.hawser.cuda.CallContext;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordReader;
import io.hawser.shm.wire.RecordWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/** A call that records its end. {@code doubt} chooses the results of checks: 0 accepts all. */
final class TestCall implements CallContext {
    /** Chooses the result of a check. */
    interface Doubt {
        /** 0 accept, 1 fail, 2 fatal. */
        int next();
    }

    private final Arena arena;
    private final RecordReader in;
    private final RecordWriter reply = new RecordWriter(64);
    private final Doubt doubt;
    private final Map<Long, Long> registered = new HashMap<>();
    private int ends;
    private Integer finished;
    private String fatal;
    private long dropped;

    TestCall(Arena arena, byte[] record, Doubt doubt) {
        this.arena = arena;
        this.doubt = doubt;
        MemorySegment copy = arena.allocate(record.length, 8);
        MemorySegment.copy(record, 0, copy, java.lang.foreign.ValueLayout.JAVA_BYTE, 0, record.length);
        in = new RecordReader().wrap(copy, 0, record.length);
        reply.begin(in.opcode() | RecordLayout.REPLY_BIT, in.sequence(), in.thread(), 0, 0);
    }

    @Override
    public RecordReader in() {
        return in;
    }

    @Override
    public int thread() {
        return in.thread();
    }

    @Override
    public int context() {
        return in.context();
    }

    @Override
    public long sequence() {
        return in.sequence();
    }

    @Override
    public boolean wantsReply() {
        return (in.flags() & RecordLayout.FLAG_REPLY) != 0;
    }

    @Override
    public long handle(HandleKind kind, long id) {
        if (id >>> 40 != kind.number()) {
            fatal("kind");
            return 0;
        }
        check();
        return isRejected() ? 0 : CallValues.nativeHandle(id);
    }

    @Override
    public void register(HandleKind kind, long id, long nativeHandle) {
        registered.put(id, nativeHandle);
    }

    @Override
    public void registerFailed(HandleKind kind, long id) {
        registered.put(id, null);
    }

    @Override
    public void drop(HandleKind kind, long id) {
        dropped = id;
    }

    @Override
    public boolean checkDevice(long address, long bytes) {
        check();
        return !isRejected();
    }

    @Override
    public MemorySegment object(String type, MemorySegment content) {
        check();
        return content;
    }

    @Override
    public MemorySegment workspace(long bytes) {
        return MemorySegment.NULL; // the shapes have none
    }

    @Override
    public MemorySegment number(MemorySegment content, long bytes) {
        check();
        return content;
    }

    @Override
    public void answerIn(int invalidValue, int invalidHandle) {
        // Each library's checks fail alike here.
    }

    private void check() {
        switch (doubt.next()) {
            case 1 -> fail(1);
            case 2 -> fatal("doubt");
            default -> {}
        }
    }

    @Override
    public void fail(int cuResult) {
        ends++;
        finished = cuResult;
    }

    @Override
    public void fatal(String reason) {
        ends++;
        fatal = reason;
    }

    @Override
    public boolean isRejected() {
        return ends > 0;
    }

    @Override
    public MemorySegment scratch(long bytes) {
        return arena.allocate(bytes, 8);
    }

    @Override
    public RecordWriter reply() {
        return reply;
    }

    @Override
    public void finish(int cuResult) {
        ends++;
        finished = cuResult;
    }

    @Override
    public void defer() {
        throw new AssertionError("no test defers");
    }

    /** How often the call ended; 1 is right. */
    int ends() {
        return ends;
    }

    /** Result with which it finished or failed; otherwise null. */
    Integer finished() {
        return finished;
    }

    /** Reason that ended the session; null otherwise. */
    String fatal() {
        return fatal;
    }

    /** Created handles: id to native handle, null for a failed one. */
    Map<Long, Long> registered() {
        return registered;
    }

    /** The destroyed handle's id. */
    long dropped() {
        return dropped;
    }

    /** The reply's payload. */
    byte[] replyPayload() {
        int length = reply.end();
        byte[] payload = new byte[length - RecordLayout.HEADER_BYTES];
        System.arraycopy(reply.array(), RecordLayout.HEADER_BYTES, payload, 0, payload.length);
        return payload;
    }
}
