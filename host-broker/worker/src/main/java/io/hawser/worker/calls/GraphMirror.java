package io.hawser.worker.calls;

import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.HwsGraphEdge;
import io.hawser.cuda.generated.HwsGraphLink;
import io.hawser.cuda.generated.HwsGraphNode;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GraphCallbacks;
import io.hawser.worker.session.GraphExecState;
import io.hawser.worker.session.GraphParameters;
import io.hawser.worker.session.GraphState;
import io.hawser.worker.session.GuestObjects;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Keeps the mirrors of a guest's graphs, and the backend's graphs equal to them. A node whose creation failed stays in
 * its mirror, so that later references to it differ from references to a node that never existed. Session thread only.
 */
final class GraphMirror {
    /** Nodes of all graphs of a session. Each costs memory here and in the backend. */
    private static final int MAX_NODES = 1 << 20;
    /** Dependencies of all graphs of a session. A guest can make many from few nodes. */
    private static final int MAX_EDGES = 1 << 22;
    /** Conditions of all graphs of a session. Each costs memory of the device, which no quota counts. */
    private static final int MAX_CONDITIONS = 1 << 16;
    private static final long PORTS_MASK = 0xFFFFFF; // fromPort, toPort, type: the first bytes of CUgraphEdgeData

    private final GuestObjects objects;
    private final GraphCallbacks callbacks;
    private final GraphBuilder builder;
    private final GraphDecoder decoder;
    private int conditions;
    private int nodes;
    private int edges;

    GraphMirror(GuestObjects objects, GraphCallbacks callbacks, GraphBuilder builder, GraphDecoder decoder) {
        this.objects = objects;
        this.callbacks = callbacks;
        this.builder = builder;
        this.decoder = decoder;
    }

    /**
     * The first CUresult from a failed creation of a part of a graph, or of a graph inside it; 0 when all succeeded.
     */
    static int error(GraphState graph) {
        int error = graph.error();
        for (GraphState.Node node : graph.nodes().values()) {
            for (GraphState inside : node.inner()) {
                error = error != 0 ? error : error(inside);
            }
        }
        return error;
    }

    /** The node of an index. Ends the session and returns null when the graph never had it. */
    GraphState.Node find(Call call, GraphState graph, int index) {
        GraphState.Node node = graph.nodes().get(index);
        if (node == null) {
            call.fatal("a node must exist: graph=0x" + Long.toHexString(graph.id()) + " index="
                + Integer.toUnsignedString(index));
        }
        return node;
    }

    /** Adds the nodes of a blob; ends the call. */
    void add(Call call, GraphState graph, long count, MemorySegment blob) {
        GraphBlob descriptions = new GraphBlob(blob);
        int result = 0;
        long added = 0;
        while (descriptions.next()) {
            int error = add(call, graph, descriptions);
            if (call.isRejected()) {
                return;
            }
            added++;
            result = result == 0 ? error : result;
        }
        end(call, descriptions, added, count, result);
    }

    private static void end(Call call, GraphBlob descriptions, long found, long count, int result) {
        if (descriptions.malformed() != null || found != count) {
            call.fatal(descriptions.malformed() != null ? descriptions.malformed()
                : "a blob must hold as many nodes as announced: nodes=" + found + " nodeCount=" + count);
            return;
        }
        call.finish(result);
    }

    private int add(Call call, GraphState graph, GraphBlob description) {
        GraphState.Node node = begin(call, graph, description.index(), description.dependencies());
        if (node == null) {
            return 0;
        }
        GraphDecoder.Result decoded = decoder.decode(description.type(), description.context(), description.body());
        if (decoded.malformed() != null) {
            call.fatal(decoded.malformed());
            return 0;
        }
        int result = decoded.error() != 0 ? decoded.error() : make(node, decoded);
        if (result != 0) {
            graph.failed(result);
        }
        return result;
    }

    /** Records a condition of a graph; false when the session has too many. */
    boolean addCondition(GraphState graph, long handle) {
        if (conditions >= MAX_CONDITIONS || !graph.conditions().add(handle)) {
            return false;
        }
        conditions++;
        return true;
    }

    /** Whether the session may have as many further bodies of conditional nodes, or nodes of captured graphs. */
    boolean hasRoom(int count) {
        return count <= MAX_NODES - nodes;
    }

    /** Counts bodies of a conditional node, each of which costs as much as a node, or nodes of a captured graph. */
    void add(int count) {
        nodes += count;
    }

    /** Creates a node in the backend. On failure it undoes the decoder's use of a callback id. */
    private int make(GraphState.Node node, GraphDecoder.Result decoded) {
        int result = nodes > MAX_NODES || edges > MAX_EDGES ? CudaResult.OUT_OF_MEMORY : 0;
        GraphState child = decoded.child();
        for (GraphState.Node before : node.before().keySet()) {
            result = before.isMade() ? result : before.graph().error();
        }
        if (child != null && (child.outer() != null || child.holds(node.graph()))) {
            result = CudaResult.INVALID_VALUE;
        } else if (child != null && child.waits() != GraphState.Waits.FOR_NOTHING && node.graph().isBody()) {
            result = CudaResult.NOT_SUPPORTED; // as the driver says of NCCL's nodes in a body
        }
        if (result == 0) {
            result = builder.make(node, decoded.parameters());
        }
        if (result == 0 && decoded.parameters().node() instanceof GraphNode.Free free) {
            // Recorded now, because the address may be another node's later.
            node.frees(objects.graphMemory().at(free.address()));
        }
        if (result != 0) {
            release(decoded.parameters());
        } else if (child != null) {
            node.addInner(child);
        }
        return result;
    }

    private void release(GraphParameters parameters) {
        if (parameters.callsGuest()) {
            callbacks.release(parameters.callbackId());
        }
    }

    /**
     * Puts a new node into the mirror; the backend does not have it yet.
     *
     * @param dependencies array of HwsGraphEdge.
     * @return null, after ending the session, for an index or dependency that no correct guest sends.
     */
    GraphState.Node begin(Call call, GraphState graph, int index, MemorySegment dependencies) {
        if (!graph.nodes().isEmpty() && Integer.compareUnsigned(index, graph.nodes().lastKey()) <= 0) {
            call.fatal("a new node's index must be above all others: index=" + Integer.toUnsignedString(index)
                + " highest=" + Integer.toUnsignedString(graph.nodes().lastKey()));
            return null;
        }
        if (nodes > 2 * MAX_NODES || edges > 2 * MAX_EDGES) { // the guest continues although its calls have failed
            call.fatal("a session's graphs must stay within a limit: nodes=" + nodes + " edges=" + edges);
            return null;
        }
        GraphState.Node node = new GraphState.Node(graph, index);
        for (long at = 0; at < dependencies.byteSize(); at += HwsGraphEdge.BYTES) {
            GraphState.Node before = find(call, graph,
                dependencies.get(ValueLayout.JAVA_INT_UNALIGNED, at + HwsGraphEdge.FROM_OFFSET));
            if (before == null) {
                undo(node);
                return null;
            }
            long data = dependencies.get(ValueLayout.JAVA_INT_UNALIGNED, at + HwsGraphEdge.FROM_PORT_OFFSET)
                & PORTS_MASK;
            connect(before, node, data);
        }
        graph.nodes().put(index, node);
        nodes++;
        return node;
    }

    private boolean connect(GraphState.Node from, GraphState.Node to, long data) {
        if (to.before().putIfAbsent(from, data) != null) {
            return false;
        }
        from.after().add(to);
        edges++;
        return true;
    }

    private void disconnect(GraphState.Node from, GraphState.Node to) {
        if (to.before().remove(from) != null) {
            from.after().remove(to);
            edges--;
        }
    }

    /** Removes a node from its mirror. */
    void undo(GraphState.Node node) {
        List.copyOf(node.before().keySet()).forEach(before -> disconnect(before, node));
        List.copyOf(node.after()).forEach(after -> disconnect(node, after));
        if (node.graph().nodes().remove(node.index(), node)) {
            nodes--;
        }
    }

    /** Removes a node that the backend no longer has, and releases its resources. */
    void forget(GraphState.Node node) {
        undo(node);
        if (node.parameters() != null) {
            release(node.parameters());
        }
        if (node.memory() != null) {
            objects.graphMemory().release(node.memory());
        }
        if (node.parameters() != null && node.parameters().type() == CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            nodes -= node.inner().size();
        }
        node.inner().forEach(this::forget);
    }

    /** Removes a graph that the backend no longer has. */
    void forget(GraphState graph) {
        conditions -= graph.conditions().size();
        nodes -= graph.captured() == null || graph.isGone() ? 0 : graph.captured().nodes();
        List.copyOf(graph.nodes().values()).forEach(this::forget);
        graph.markGone();
    }

    /** Sets parameters of the nodes in a blob; ends the call. */
    void set(Call call, GraphState graph, long count, MemorySegment blob) {
        GraphBlob descriptions = new GraphBlob(blob);
        int result = 0;
        long found = 0;
        while (descriptions.next()) {
            GraphState.Node node = settable(call, graph, descriptions);
            int error = node == null ? 0 : set(call, node, descriptions);
            if (call.isRejected()) {
                return;
            }
            found++;
            result = result == 0 ? error : result;
        }
        end(call, descriptions, found, count, result);
    }

    private GraphState.Node settable(Call call, GraphState graph, GraphBlob description) {
        GraphState.Node node = find(call, graph, description.index());
        if (node != null && description.dependencyCount() != 0) {
            call.fatal("a description that sets a node must have no dependencies: dependencyCount="
                + description.dependencyCount());
            return null;
        }
        return node;
    }

    private int set(Call call, GraphState.Node node, GraphBlob description) {
        GraphDecoder.Result decoded = decoder.decode(description.type(), description.context(), description.body());
        if (decoded.malformed() != null) {
            call.fatal(decoded.malformed());
            return 0;
        }
        if (decoded.error() != 0) {
            return decoded.error();
        }
        GraphParameters old = node.parameters();
        int result = !node.isMade() ? node.graph().error()
            : !isOfType(old.type(), decoded.parameters().type()) ? CudaResult.INVALID_VALUE
            : builder.set(node, decoded.parameters());
        release(result == 0 ? old : decoded.parameters());
        return result;
    }

    /**
     * Whether a node may change to another type. A copy between two places in the guest travels as a host node, so
     * copies and host nodes are interchangeable.
     */
    private static boolean isOfType(int mine, int other) {
        return mine == other && mine != CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH || isCopy(mine) && isCopy(other);
    }

    private static boolean isCopy(int type) {
        return type == CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY || type == CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST;
    }

    /** Sets parameters of a blob's only node in an executable graph; ends the call. */
    void setInExec(Call call, GraphExecState exec, GraphState graph, MemorySegment blob) {
        GraphBlob description = new GraphBlob(blob);
        GraphState.Node node = description.next() ? settable(call, graph, description) : null;
        if (call.isRejected()) {
            return;
        }
        if (node == null || description.body().byteSize() + HwsGraphNode.BYTES
            != blob.byteSize()) {
            call.fatal("a blob must hold one node: blobBytes=" + blob.byteSize() + " "
                + description.malformed());
            return;
        }
        GraphDecoder.Result decoded = decoder.decode(description.type(), description.context(), description.body());
        if (decoded.malformed() != null) {
            call.fatal(decoded.malformed());
            return;
        }
        if (decoded.error() != 0) {
            call.fail(decoded.error());
            return;
        }
        GraphParameters old = exec.parameters(node);
        int result = old == null || old.type() != decoded.parameters().type() ? CudaResult.INVALID_VALUE
            : decoded.child() != null && error(decoded.child()) != 0 ? error(decoded.child())
            : builder.setInExec(exec, node, decoded.parameters());
        if (result != 0) {
            release(decoded.parameters());
        } else {
            exec.set(node, decoded.parameters());
        }
        call.finish(result);
    }

    /** Adds or removes dependencies, an array of HwsGraphLink; ends the call. */
    void edges(Call call, GraphState graph, MemorySegment links, boolean add) {
        List<Map.Entry<GraphState.Node, GraphState.Node>> pairs = new ArrayList<>();
        List<Long> data = new ArrayList<>();
        boolean allMade = true;
        for (long at = 0; at < links.byteSize(); at += HwsGraphLink.BYTES) {
            GraphState.Node from = find(call, graph,
                links.get(ValueLayout.JAVA_INT_UNALIGNED, at + HwsGraphLink.FROM_OFFSET));
            GraphState.Node to = from == null ? null : find(call, graph,
                links.get(ValueLayout.JAVA_INT_UNALIGNED, at + HwsGraphLink.TO_OFFSET));
            if (to == null) {
                return;
            }
            allMade &= from.isMade() && to.isMade();
            pairs.add(Map.entry(from, to));
            data.add(links.get(ValueLayout.JAVA_LONG_UNALIGNED, at + HwsGraphLink.DATA_OFFSET) & PORTS_MASK);
        }
        int result = add && edges + pairs.size() > MAX_EDGES ? CudaResult.OUT_OF_MEMORY
            : !allMade ? graph.error() : pairs.isEmpty() ? 0 : builder.edges(graph, pairs, data, add);
        for (int i = 0; result == 0 && i < pairs.size(); i++) {
            if (add) {
                connect(pairs.get(i).getKey(), pairs.get(i).getValue(), data.get(i));
            } else {
                disconnect(pairs.get(i).getKey(), pairs.get(i).getValue());
            }
        }
        if (result != 0) {
            graph.failed(result);
        }
        call.finish(result);
    }
}
