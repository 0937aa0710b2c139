package io.hawser.worker.calls;

import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.CUmemAccessDesc;
import io.hawser.cuda.generated.CUmemLocation;
import io.hawser.cuda.generated.GraphManualCalls;
import io.hawser.cuda.generated.GraphReplies;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.Gates;
import io.hawser.worker.session.GraphCallbacks;
import io.hawser.worker.session.GraphExecState;
import io.hawser.worker.session.GraphParameters;
import io.hawser.worker.session.GraphState;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/**
 * Graph calls: mirrors of the guest's graphs, and executable graphs made from them. An error of the backend that no
 * reply could carry is reported again when the graph is instantiated. Session thread.
 */
final class GraphCalls implements GraphManualCalls<Call> {
    private static final int LOCATION_DEVICE = 1; // CU_MEM_LOCATION_TYPE_DEVICE
    private static final int INSTANTIATE_ERROR = 1; // CUDA_GRAPH_INSTANTIATE_ERROR
    private static final int RESERVED_MEM_CURRENT = 2; // CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
    private static final int UPDATE_ERROR = 1; // CU_GRAPH_EXEC_UPDATE_ERROR
    private static final int ASSIGN_DEFAULT = 1; // CU_GRAPH_COND_ASSIGN_DEFAULT
    private static final long DEVICE_LAUNCH = 4; // CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
    /** CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH and USE_NODE_PRIORITY. The guest uploads by itself. */
    private static final long ALLOWED_FLAGS = 1 | 8 | DEVICE_LAUNCH;
    /** Offset of the executable graph's id in a request that also names a graph. */
    private static final int EXEC_OFFSET = 0;
    /** Offset of the graph's id in a request that also names a context. */
    private static final int GRAPH_OFFSET = 0;

    private final Session session;
    private final GuestObjects objects;
    private final GraphBackend graphs;
    private final GraphCallbacks callbacks;
    private final GraphMirror mirror;
    private final GraphBuilder builder;
    private final MemoryQuota.KeptMemory memory;
    private final GraphCaptures captures;

    /**
     * Makes the calls of a session.
     *
     * @param session the session.
     * @param region the guest's region; null over another carrier.
     */
    GraphCalls(Session session, SharedRegion region) {
        this.session = session;
        this.objects = session.objects();
        this.graphs = session.backend().graphs();
        this.callbacks = session.graphCallbacks();
        this.builder = new GraphBuilder(objects, graphs);
        this.mirror = new GraphMirror(objects, callbacks, builder, new GraphDecoder(objects, callbacks, region));
        this.memory = objects.quota().addKeeper(new Reserve());
        this.captures = new GraphCaptures(session, mirror, memory);
        if (graphs != null) {
            graphs.hostFunctions(callbacks::run);
        }
    }

    /** The memory that a device's driver keeps for graphs. */
    private final class Reserve implements MemoryQuota.Keeper {
        @Override
        public long reservedBytes(int device) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
                return graphs.memoryAttribute(device, RESERVED_MEM_CURRENT, out) == 0
                    ? out.get(ValueLayout.JAVA_LONG, 0) : 0; // a backend without this attribute keeps nothing
            }
        }

        @Override
        public void trim(int device) {
            if (!session.gates().isOpen()) { // trimming may wait for the device
                graphs.trim(device);
            }
        }
    }

    private static GraphState state(Call call) {
        return call.lastObject().info(GraphState.class);
    }

    private GraphExecState exec(Call call) {
        return objects.handles().find(HandleKind.GRAPH_EXEC, call.in().i64(EXEC_OFFSET)).info(GraphExecState.class);
    }

    @Override
    public void hwsGraphCreate(Call call, long graphId, int flags) {
        MemorySegment out = call.scratch(Long.BYTES);
        int result = graphs == null ? CudaResult.NOT_SUPPORTED : graphs.create(out);
        long handle = result == 0 ? out.get(ValueLayout.JAVA_LONG, 0) : 0;
        objects.register(call, HandleKind.GRAPH, graphId, handle, null,
            result == 0 ? new GraphState(graphId, handle) : null);
        if (call.isRejected() && handle != 0) {
            graphs.destroy(handle);
        }
        call.finish(result);
    }

    @Override
    public void hwsGraphDestroy(Call call, long graph, long graphId) {
        GraphState state = state(call);
        int result = 0;
        if (!state.isGone() && state.outer() == null) {
            result = graphs.destroy(graph);
            mirror.forget(state);
        }
        objects.drop(HandleKind.GRAPH, graphId);
        call.finish(result);
    }

    @Override
    public void hwsGraphAddNodes(Call call, long graph, int nodeCount, int blobBytes, MemorySegment blob) {
        GraphState state = live(call);
        if (state != null) {
            mirror.add(call, state, Integer.toUnsignedLong(nodeCount), blob);
        }
    }

    /**
     * The graph of a call. Null after failing the call, when the graph was inside a graph that has been destroyed, or
     * is a captured one, whose nodes nothing may change and which can only be executed inside another graph.
     */
    private static GraphState live(Call call) {
        return live(call, state(call));
    }

    private static GraphState live(Call call, GraphState state) {
        if (state.isGone() || state.captured() != null) {
            call.fail(CudaResult.INVALID_VALUE);
            return null;
        }
        return state;
    }

    @Override
    public void hwsGraphSetNodes(Call call, long graph, int nodeCount, int blobBytes, MemorySegment blob) {
        GraphState state = live(call);
        if (state != null) {
            mirror.set(call, state, Integer.toUnsignedLong(nodeCount), blob);
        }
    }

    @Override
    public void hwsGraphAddAlloc(Call call, long graph, int index, int device, long bytesize,
        int dependencyCount, MemorySegment dependencies, int accessCount, MemorySegment accessDescs) {
        GraphState state = live(call);
        Handle owner = objects.owningContext();
        if (state == null) {
            return;
        }
        int check = owner == null ? CudaResult.INVALID_CONTEXT : bytesize <= 0 ? CudaResult.INVALID_VALUE
            : device < 0 || device >= session.backend().deviceCount() ? CudaResult.INVALID_DEVICE
            : access(device, accessDescs);
        MemoryQuota.Charge charge = check != 0 ? null : memory.claim(device, bytesize);
        if (check != 0 || charge == null && !state.freesMemory()) {
            call.fail(check != 0 ? check : CudaResult.OUT_OF_MEMORY);
            return;
        }
        GraphState.Node node = mirror.begin(call, state, index, dependencies);
        if (node == null) {
            giveBack(charge);
            return;
        }
        MemorySegment out = call.scratch(2L * Long.BYTES);
        long[] before = node.before().keySet().stream().mapToLong(GraphState.Node::last).toArray();
        int result = graphs.addAlloc(graph, before, device, bytesize, out);
        if (result != 0) {
            mirror.undo(node);
            giveBack(charge);
            call.fail(result);
            return;
        }
        long handle = out.get(ValueLayout.JAVA_LONG, 0);
        long address = out.get(ValueLayout.JAVA_LONG, Long.BYTES);
        // The memory must overlap memory that earlier nodes have freed, so only its new part is claimed.
        if (charge == null) {
            charge = memory.claim(device, objects.graphMemory().newBytes(address, bytesize));
        }
        if (charge == null) {
            mirror.undo(node);
            // The backend keeps the node, because it cannot remove nodes from a graph that uses memory.
            state.failed(CudaResult.OUT_OF_MEMORY);
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        node.made(new GraphParameters(CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_ALLOC, owner,
            new GraphNode.Empty(), 0, GraphParameters.Form.PLAIN, List.of()), handle,
            handle);
        node.memory(objects.graphMemory().add(address, bytesize, owner, charge));
        if (node.memory() == null) {
            throw new IllegalStateException("the backend must not return memory that is in use: address=0x"
                + Long.toHexString(address) + " bytes=" + bytesize);
        }
        GraphReplies.hwsGraphAddAlloc(call.reply(), address);
        call.finish(0);
    }

    private static void giveBack(MemoryQuota.Charge charge) {
        if (charge != null) {
            charge.giveBack();
        }
    }

    /**
     * Checks access descriptors: a device can always access its own memory; access from other devices is not supported.
     */
    private static int access(int device, MemorySegment descriptions) {
        for (long at = 0; at + CUmemAccessDesc.BYTES <= descriptions.byteSize(); at += CUmemAccessDesc.BYTES) {
            long location = at + CUmemAccessDesc.LOCATION_OFFSET;
            if (descriptions.get(ValueLayout.JAVA_INT_UNALIGNED, location + CUmemLocation.TYPE_OFFSET)
                != LOCATION_DEVICE
                || descriptions.get(ValueLayout.JAVA_INT_UNALIGNED, location + CUmemLocation.ID_OFFSET) != device) {
                return CudaResult.NOT_SUPPORTED;
            }
        }
        return 0;
    }

    /** The graph of a call whose last object is a context; null as for {@link #live}. */
    private GraphState graphBeforeContext(Call call) {
        return live(call,
            objects.handles().find(HandleKind.GRAPH, call.in().i64(GRAPH_OFFSET)).info(GraphState.class));
    }

    @Override
    public void hwsGraphAddCondition(Call call, long graph, long ctx, int defaultValue, int flags) {
        Handle context = call.lastObject();
        GraphState state = graphBeforeContext(call);
        if (state == null) {
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = (flags & ~ASSIGN_DEFAULT) != 0 ? CudaResult.INVALID_VALUE : builder.enter(context);
        if (result == 0) {
            result = graphs.addCondition(graph, defaultValue, flags, out);
        }
        long handle = result == 0 ? out.get(ValueLayout.JAVA_LONG, 0) : 0;
        if (result == 0 && !mirror.addCondition(state, handle)) {
            result = CudaResult.OUT_OF_MEMORY; // the condition ends with its graph
        }
        if (result == 0) {
            GraphReplies.hwsGraphAddCondition(call.reply(), handle);
        }
        call.finish(result);
    }

    @Override
    public void hwsGraphAddConditional(Call call, long graph, long ctx, int index, long handle, int type,
        int dependencyCount, MemorySegment dependencies, int bodyCount, MemorySegment bodies) {
        Handle context = call.lastObject();
        GraphState state = graphBeforeContext(call);
        if (state == null) {
            return;
        }
        if (bodyCount <= 0 || !state.mayUse(handle)) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        GraphState.Node node = mirror.begin(call, state, index, dependencies);
        if (node == null) {
            return;
        }
        MemorySegment made = call.scratch((1L + bodyCount) * Long.BYTES);
        int result = state.error() != 0 ? state.error() : mirror.hasRoom(bodyCount)
            ? builder.conditional(node, context, handle, type, made) : CudaResult.OUT_OF_MEMORY;
        if (result != 0) {
            mirror.undo(node);
            call.fail(result);
            return;
        }
        mirror.add(bodyCount);
        for (int i = 0; i < bodyCount && !call.isRejected(); i++) {
            long id = bodies.getAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, i);
            GraphState body = new GraphState(id, made.getAtIndex(ValueLayout.JAVA_LONG, 1L + i));
            node.addInner(body);
            objects.register(call, HandleKind.GRAPH, id, body.nativeHandle(), null, body);
        }
        call.finish(0);
    }

    @Override
    public void hwsGraphCapture(Call call, long graphId, int opcode, int resultBytes, int recordBytes,
        MemorySegment record) {
        captures.capture(call, graphId, opcode, resultBytes, record);
    }

    @Override
    public void hwsGraphCopy(Call call, long copyId, long graph) {
        captures.copy(call, copyId, state(call));
    }

    @Override
    public void hwsGraphAddEdges(Call call, long graph, int linkCount, MemorySegment links) {
        GraphState state = live(call);
        if (state != null) {
            mirror.edges(call, state, links, true);
        }
    }

    @Override
    public void hwsGraphRemoveEdges(Call call, long graph, int linkCount, MemorySegment links) {
        GraphState state = live(call);
        if (state != null) {
            mirror.edges(call, state, links, false);
        }
    }

    @Override
    public void hwsGraphRemoveNode(Call call, long graph, int index) {
        GraphState state = live(call);
        GraphState.Node node = state == null ? null : mirror.find(call, state, index);
        // The backend could not remove the node, so launches would still execute it without charge.
        if (node != null && state.usesMemory()) {
            call.fail(CudaResult.NOT_SUPPORTED);
        } else if (node != null) {
            builder.remove(node);
            mirror.forget(node);
            call.finish(0);
        }
    }

    @Override
    public void hwsGraphInstantiate(Call call, long execId, long graph, long flags) {
        GraphState state = live(call);
        if (state == null) {
            return;
        }
        MemorySegment out = call.scratch(3L * Long.BYTES);
        out.set(ValueLayout.JAVA_INT, 2L * Long.BYTES, INSTANTIATE_ERROR);
        int outcome = (flags & ~ALLOWED_FLAGS) != 0 ? CudaResult.NOT_SUPPORTED : GraphMirror.error(state);
        if (outcome == 0) {
            outcome = graphs.instantiate(graph, flags, out);
        }
        if (outcome == 0) {
            long handle = out.get(ValueLayout.JAVA_LONG, 0);
            objects.register(call, HandleKind.GRAPH_EXEC, execId, handle, null,
                new GraphExecState(handle, state, callbacks, objects.graphMemory()));
            if (call.isRejected()) {
                graphs.destroyExec(handle);
                return;
            }
        }
        GraphState.Node blamed = outcome == 0 ? null : state.find(out.get(ValueLayout.JAVA_LONG, Long.BYTES));
        GraphReplies.hwsGraphInstantiate(call.reply(), outcome, out.get(ValueLayout.JAVA_INT, 2L * Long.BYTES),
            blamed == null ? 0 : blamed.graph().id(), blamed == null ? 0 : blamed.index(),
            outcome == 0 && (flags & DEVICE_LAUNCH) != 0 ? out.get(ValueLayout.JAVA_LONG, 0) : 0);
        call.finish(0);
    }

    @Override
    public void hwsGraphExecUpdate(Call call, long exec, long graph) {
        GraphState state = live(call);
        if (state == null) {
            return;
        }
        MemorySegment out = call.scratch(3L * Long.BYTES);
        out.set(ValueLayout.JAVA_INT, 0, UPDATE_ERROR);
        int outcome = GraphMirror.error(state);
        if (outcome == 0) {
            outcome = graphs.update(exec, graph, out);
        }
        if (outcome == 0) {
            exec(call).update(state);
        }
        GraphState.Node blamed = state.find(out.get(ValueLayout.JAVA_LONG, Long.BYTES));
        GraphState.Node from = state.find(out.get(ValueLayout.JAVA_LONG, 2L * Long.BYTES));
        GraphReplies.hwsGraphExecUpdate(call.reply(), outcome, out.get(ValueLayout.JAVA_INT, 0),
            blamed == null ? 0 : blamed.graph().id(), blamed == null ? 0 : blamed.index(),
            from == null ? 0 : from.graph().id(), from == null ? 0 : from.index());
        call.finish(0);
    }

    @Override
    public void hwsGraphExecDestroy(Call call, long exec, long execId) {
        GraphExecState state = call.lastObject().info(GraphExecState.class);
        objects.drop(HandleKind.GRAPH_EXEC, execId);
        int result = graphs.destroyExec(exec);
        state.release();
        call.finish(result);
    }

    @Override
    public void hwsGraphExecSetNode(Call call, long exec, long graph, int blobBytes, MemorySegment blob) {
        GraphState state = live(call);
        if (state != null) {
            mirror.setInExec(call, exec(call), state, blob);
        }
    }

    @Override
    public void hwsGraphExecSetKernel(Call call, long exec, long graph, int blobBytes, MemorySegment blob) {
        hwsGraphExecSetNode(call, exec, graph, blobBytes, blob);
    }

    @Override
    public void hwsGraphEnable(Call call, long exec, long graph, int index, int enabled) {
        GraphState state = live(call);
        GraphState.Node node = state == null ? null : mirror.find(call, state, index);
        if (node == null) {
            return;
        }
        GraphExecState executable = exec(call);
        if (executable.parameters(node) == null) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        int result = builder.enable(executable, node, enabled != 0);
        if (result == 0) {
            executable.enable(node, enabled != 0);
        }
        call.finish(result);
    }

    @Override
    public void hwsGraphNodeWrite(Call call, long callbackId, long offset, long byteCount,
        MemorySegment data) {
        MemorySegment staging = staging(call, callbackId, offset, data.byteSize(), true);
        if (staging != null) {
            staging.copyFrom(data);
            call.finish(0);
        }
    }

    @Override
    public void hwsGraphNodeRead(Call call, long callbackId, long offset, int byteCount) {
        MemorySegment staging = staging(call, callbackId, offset, Integer.toUnsignedLong(byteCount), false);
        if (staging != null) {
            GraphReplies.hwsGraphNodeRead(call.reply(), staging);
            call.finish(0);
        }
    }

    /** A part of a copy's staging memory that the guest may use now; otherwise ends the session and returns null. */
    private MemorySegment staging(Call call, long callbackId, long offset, long bytes, boolean toDevice) {
        MemorySegment staging = callbacks.unanswered(callbackId, toDevice);
        if (staging == null || offset < 0 || offset > staging.byteSize() || bytes > staging.byteSize() - offset) {
            call.fatal("bytes of a graph's copy must belong to an unacknowledged callback: callbackId="
                + callbackId + " offset=" + offset + " bytes=" + bytes
                + " available=" + (staging == null ? 0 : staging.byteSize()));
            return null;
        }
        return staging.asSlice(offset, bytes);
    }

    @Override
    public void cuGraphLaunch(Call call, long hGraphExec, long hStream) {
        GraphExecState exec = call.lastObject().info(GraphExecState.class);
        long[] ids = exec.beginLaunch();
        if (ids != null) {
            session.work().issued(call.lastStream(), (long) ids.length * Gates.HOST_FUNCTION);
        }
        // Memory that was freed since a copy's addresses were checked may belong to another session by now.
        int result = exec.isAllowed(objects.allocations()) ? graphs.launch(hGraphExec, hStream)
            : CudaResult.INVALID_VALUE;
        if (result == 0) {
            exec.recordMemory();
            session.countKernel();
        }
        if (result == 0 && exec.waits() == GraphState.Waits.FOR_THREADS) {
            Gates.Gate gate = session.gates().open();
            session.work().whenReached(call.lastStream(), status -> session.gates().close(gate));
        }
        if (ids != null && result == 0) {
            session.work().whenReached(call.lastStream(), status -> exec.endLaunch(ids, status));
        } else if (ids != null) {
            exec.endLaunch(ids, result);
        }
        call.finish(result);
    }

    @Override
    public void cuGraphUpload(Call call, long hGraphExec, long hStream) {
        call.finish(graphs.upload(hGraphExec, hStream));
    }

    @Override
    public void cuDeviceGraphMemTrim(Call call, int device) {
        call.finish(graphs == null ? CudaResult.NOT_SUPPORTED : graphs.trim(device));
    }

    @Override
    public void hwsGraphMemGetAttribute(Call call, int device, int attr) {
        MemorySegment out = call.scratch(Long.BYTES);
        int result = graphs == null ? CudaResult.NOT_SUPPORTED : graphs.memoryAttribute(device, attr, out);
        if (result == 0) {
            GraphReplies.hwsGraphMemGetAttribute(call.reply(), out.get(ValueLayout.JAVA_LONG, 0));
        }
        call.finish(result);
    }

    @Override
    public void hwsGraphMemSetAttribute(Call call, int device, int attr, long value) {
        call.finish(graphs == null ? CudaResult.NOT_SUPPORTED : graphs.setMemoryAttribute(device, attr, value));
    }
}
