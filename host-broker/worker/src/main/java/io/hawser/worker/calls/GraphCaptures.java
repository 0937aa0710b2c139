package io.hawser.worker.calls;

import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.generated.GraphReplies;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GraphState;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Makes graphs of what libraries do in a call: the call is served on a private stream that captures, with the checks of
 * a direct call. Session thread only.
 */
final class GraphCaptures {
    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING: the legacy stream must not wait for a capture
    private static final int MAX_RESULT_BYTES = 4096; // graph.yaml
    // The flags of hwsGraphCapture.
    private static final int INVALIDATED = 1;
    private static final int USES_MEMORY = 2;

    private final Session session;
    private final GuestObjects objects;
    private final GraphBackend graphs;
    private final GraphMirror mirror;
    private final MemoryQuota.KeptMemory memory;

    /**
     * Makes captures for a session.
     *
     * @param session the session.
     * @param mirror counts the nodes.
     * @param memory counts the memory that nodes allocate.
     */
    GraphCaptures(Session session, GraphMirror mirror, MemoryQuota.KeptMemory memory) {
        this.session = session;
        this.objects = session.objects();
        this.graphs = session.backend().graphs();
        this.mirror = mirror;
        this.memory = memory;
    }

    /** The graph of an ended capture, as the backend returns it. */
    private record Made(long graph, long nodes, long bytes) {}

    /** Serves hwsGraphCapture. */
    void capture(Call call, long id, int opcode, int resultBytes, MemorySegment payload) {
        if (!call.isCapturable(opcode) || payload.byteSize() % Long.BYTES != 0 || resultBytes < 0
            || resultBytes > MAX_RESULT_BYTES) {
            call.fatal("a captured call must be one of a library with work for a stream: opcode=0x"
                + Integer.toHexString(opcode) + " recordBytes=" + payload.byteSize() + " resultBytes=" + resultBytes);
            return;
        }
        MemorySegment out = call.scratch(3L * Long.BYTES);
        int result = graphs == null ? CudaResult.NOT_SUPPORTED : !mirror.hasRoom(1) ? CudaResult.OUT_OF_MEMORY
            : session.backend().driver().cuStreamCreateWithPriority(out, NON_BLOCKING, 0);
        if (result != 0) {
            call.fail(result);
            return;
        }
        long stream = out.get(ValueLayout.JAVA_LONG, 0);
        result = graphs.beginCapture(stream);
        if (result != 0) {
            session.backend().driver().cuStreamDestroy_v2(stream);
            call.fail(result);
            return;
        }
        Call inner = call.serveInner(opcode, payload, stream);
        result = graphs.endCapture(stream, out, Calls.isCommunication(opcode));
        session.backend().driver().cuStreamDestroy_v2(stream);
        Made made = result != 0 ? new Made(0, 0, 0) : new Made(out.get(ValueLayout.JAVA_LONG, 0),
            out.getAtIndex(ValueLayout.JAVA_LONG, 1), out.getAtIndex(ValueLayout.JAVA_LONG, 2));
        if (!inner.isAnswered()) { // the session has ended
            destroy(made);
            return;
        }
        boolean isInvalid = result == CudaResult.STREAM_CAPTURE_INVALIDATED;
        if (result != 0 && !isInvalid && inner.result() == 0) {
            call.fail(result);
            return;
        }
        boolean isKept = inner.result() == 0 && made.nodes > 0;
        if (!isKept) {
            destroy(made);
        } else if (!keep(call, id, inner, made)) {
            return;
        }
        answer(call, inner, resultBytes, isKept ? (int) made.nodes : 0,
            (isInvalid ? INVALIDATED : 0) | (isKept && made.bytes > 0 ? USES_MEMORY : 0));
    }

    private void destroy(Made made) {
        if (made.graph != 0) {
            graphs.destroy(made.graph);
        }
    }

    /** Gives the graph its id; false after ending the call. */
    private boolean keep(Call call, long id, Call inner, Made made) {
        boolean hasRoom = made.nodes <= Integer.MAX_VALUE && mirror.hasRoom((int) made.nodes);
        MemoryQuota.Charge charge = hasRoom && made.bytes > 0 && objects.owningContext() != null
            ? memory.claim(objects.deviceOf(objects.owningContext()), made.bytes) : null;
        if (!hasRoom || made.bytes > 0 && charge == null) {
            destroy(made);
            call.fail(CudaResult.OUT_OF_MEMORY);
            return false;
        }
        register(call, id, made.graph, new GraphState.Captured(inner.ranges(), (int) made.nodes, inner.waits()),
            made.bytes > 0);
        if (charge != null && call.isRejected()) {
            charge.giveBack();
        } else if (charge != null) {
            objects.keepCharge(objects.handles().find(HandleKind.GRAPH, id), charge);
        }
        return !call.isRejected();
    }

    private void register(Call call, long id, long graph, GraphState.Captured captured, boolean usesMemory) {
        objects.register(call, HandleKind.GRAPH, id, graph, null, new GraphState(id, graph, captured, usesMemory));
        if (call.isRejected()) {
            graphs.destroy(graph);
        } else {
            mirror.add(captured.nodes());
        }
    }

    /** Sends the library's result, with the call's own outputs. */
    private static void answer(Call call, Call inner, int resultBytes, int nodes, int flags) {
        MemorySegment outputs = inner.result() == 0 ? inner.outputs() : MemorySegment.NULL;
        long written = Math.min(outputs.byteSize(), resultBytes);
        MemorySegment result = call.scratch(resultBytes);
        MemorySegment.copy(outputs, 0, result, 0, written);
        GraphReplies.hwsGraphCapture(call.reply(), inner.result(), nodes, flags, (int) outputs.byteSize(), result);
        call.finish(0);
    }

    /** Serves hwsGraphCopy. */
    void copy(Call call, long id, GraphState from) {
        GraphState.Captured captured = from.captured();
        MemorySegment out = call.scratch(Long.BYTES);
        int result = captured == null || from.isGone() || from.usesMemory() ? CudaResult.INVALID_VALUE
            : !mirror.hasRoom(captured.nodes()) ? CudaResult.OUT_OF_MEMORY : graphs.copy(from.nativeHandle(), out);
        if (result != 0) {
            call.registerFailed(HandleKind.GRAPH, id);
            call.fail(result);
            return;
        }
        register(call, id, out.get(ValueLayout.JAVA_LONG, 0), captured, false);
        call.finish(0);
    }
}
