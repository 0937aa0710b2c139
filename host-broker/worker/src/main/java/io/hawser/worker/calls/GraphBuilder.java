package io.hawser.worker.calls;

import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GraphExecState;
import io.hawser.worker.session.GraphParameters;
import io.hawser.worker.session.GraphParameters.Form;
import io.hawser.worker.session.GraphState;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** Creates and changes the backend's nodes for a guest's node: one node, or two for a copy with the guest's memory. */
final class GraphBuilder {
    private final GuestObjects objects;
    private final GraphBackend graphs;
    private final MemorySegment out = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);

    /** The backend's nodes for a guest's node. */
    private record Natives(long first, long last) {}

    /**
     * Makes a builder for a session.
     *
     * @param objects the session's objects.
     * @param graphs the backend's graphs.
     */
    GraphBuilder(GuestObjects objects, GraphBackend graphs) {
        this.objects = objects;
        this.graphs = graphs;
    }

    /** Makes the context of a node current. Returns a CUresult. */
    int enter(Handle context) {
        if (context == null) {
            return 0;
        }
        return objects.isLive(context) ? objects.enter(context) : CudaResult.INVALID_CONTEXT;
    }

    /**
     * Creates a node.
     *
     * @param node its dependencies are set, and exist in the backend.
     * @param parameters its parameters.
     * @return CUresult; when 0, the node has its parameters.
     */
    int make(GraphState.Node node, GraphParameters parameters) {
        Natives[] made = new Natives[1];
        int result = make(node, parameters, made);
        if (result == 0) {
            node.made(parameters, made[0].first, made[0].last);
        }
        return result;
    }

    private int make(GraphState.Node node, GraphParameters parameters, Natives[] made) {
        int result = enter(parameters.context());
        if (result != 0) {
            return result;
        }
        long graph = node.graph().nativeHandle();
        boolean isPlain = node.before().values().stream().allMatch(data -> data == 0);
        long[] dependencies = isPlain ? lasts(node.before().keySet()) : new long[0];
        GraphNode firstNode = parameters.form() == Form.HOST || parameters.form() == Form.WRITE ? parameters.host()
            : parameters.node();
        result = graphs.add(graph, dependencies, firstNode, out);
        if (result != 0) {
            return result;
        }
        long first = out.get(ValueLayout.JAVA_LONG, 0);
        long last = first;
        if (parameters.form() == Form.WRITE || parameters.form() == Form.READ) {
            result = graphs.add(graph, new long[] {first},
                parameters.form() == Form.WRITE ? parameters.node() : parameters.host(), out);
            last = out.get(ValueLayout.JAVA_LONG, 0);
        }
        if (result != 0) {
            graphs.removeNode(first);
            return result;
        }
        made[0] = new Natives(first, last);
        if (!isPlain) {
            result = link(node, first);
            if (result != 0) {
                remove(made[0]);
            }
        }
        return result;
    }

    /**
     * Creates a conditional node.
     *
     * @param node its dependencies are set, and exist in the backend.
     * @param context the node's context.
     * @param condition handle of its condition.
     * @param type CUgraphConditionalNodeType.
     * @param made receives the backend's node and bodies, as {@link GraphBackend#addConditional}.
     * @return CUresult; when 0, the node has its parameters.
     */
    int conditional(GraphState.Node node, Handle context, long condition, int type, MemorySegment made) {
        int result = enter(context);
        boolean isPlain = node.before().values().stream().allMatch(data -> data == 0);
        if (result == 0) {
            result = graphs.addConditional(node.graph().nativeHandle(),
                isPlain ? lasts(node.before().keySet()) : new long[0], condition, type, made);
        }
        if (result != 0) {
            return result;
        }
        long handle = made.get(ValueLayout.JAVA_LONG, 0);
        result = isPlain ? 0 : link(node, handle);
        if (result != 0) {
            graphs.removeNode(handle);
            return result;
        }
        node.made(new GraphParameters(CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL, context, new GraphNode.Empty(), 0,
            Form.PLAIN, List.of()), handle, handle);
        return 0;
    }

    private static long[] lasts(Collection<GraphState.Node> nodes) {
        return nodes.stream().mapToLong(GraphState.Node::last).toArray();
    }

    /** Adds a node's dependencies with their edge data. */
    private int link(GraphState.Node node, long first) {
        long[] to = new long[node.before().size()];
        Arrays.fill(to, first);
        return graphs.addEdges(node.graph().nativeHandle(), lasts(node.before().keySet()), to,
            data(List.copyOf(node.before().values())));
    }

    /** CUgraphEdgeData in the backend's form: NULL when all edges are plain. */
    static MemorySegment data(List<Long> edges) {
        if (edges.stream().allMatch(data -> data == 0)) {
            return MemorySegment.NULL;
        }
        MemorySegment list = Arena.ofAuto().allocate((long) edges.size() * Long.BYTES, Long.BYTES);
        for (int i = 0; i < edges.size(); i++) {
            list.setAtIndex(ValueLayout.JAVA_LONG, i, edges.get(i));
        }
        return list;
    }

    private void remove(Natives natives) {
        if (natives.last != natives.first) {
            graphs.removeNode(natives.last);
        }
        graphs.removeNode(natives.first);
    }

    /** Removes the backend's nodes of a node. */
    void remove(GraphState.Node node) {
        if (node.isMade()) {
            remove(new Natives(node.first(), node.last()));
        }
    }

    /**
     * Changes a node's parameters.
     *
     * @param node a node that the backend has.
     * @param parameters parameters of a type that the node may change to.
     * @return CUresult; when 0, the node has its parameters.
     */
    int set(GraphState.Node node, GraphParameters parameters) {
        if (node.parameters().form() != parameters.form()) {
            return replace(node, parameters);
        }
        int result = enter(parameters.context());
        if (result == 0 && parameters.callsGuest()) {
            result = graphs.set(parameters.form() == Form.READ ? node.last() : node.first(), parameters.host());
        }
        if (result == 0 && parameters.form() != Form.HOST) {
            result = graphs.set(node.main(), parameters.node());
        }
        if (result == 0) {
            node.parameters(parameters);
        }
        return result;
    }

    /** Replaces the backend's nodes by new ones, because the old ones cannot change to the new form. */
    private int replace(GraphState.Node node, GraphParameters parameters) {
        Natives old = new Natives(node.first(), node.last());
        Natives[] made = new Natives[1];
        int result = make(node, parameters, made);
        if (result != 0) {
            return result;
        }
        for (GraphState.Node follower : node.after()) {
            if (result == 0 && follower.isMade()) {
                result = graphs.addEdges(node.graph().nativeHandle(), new long[] {made[0].last},
                    new long[] {follower.first()}, data(List.of(follower.before().get(node))));
            }
        }
        if (result != 0) {
            remove(made[0]);
            return result;
        }
        remove(old);
        node.made(parameters, made[0].first, made[0].last);
        return 0;
    }

    /**
     * Changes a node's parameters in an executable graph.
     *
     * @param exec the executable graph.
     * @param node a node of it.
     * @param parameters the new parameters, of the same form.
     * @return CUresult; when it is not 0, nothing has changed.
     */
    int setInExec(GraphExecState exec, GraphState.Node node, GraphParameters parameters) {
        GraphParameters old = exec.parameters(node);
        if (old.form() != parameters.form() || !node.isMade() || node.parameters().form() != old.form()) {
            // Known deviation: CUDA lets a copy change between pinned and pageable host memory, which are two forms
            // here. A program that does so gets CUDA_ERROR_NOT_SUPPORTED.
            return CudaResult.NOT_SUPPORTED;
        }
        int result = enter(parameters.context());
        long host = parameters.form() == Form.READ ? node.last() : node.first();
        if (result == 0 && parameters.form() != Form.HOST) {
            result = graphs.setInExec(exec.nativeHandle(), node.main(), parameters.node());
        }
        if (result == 0 && parameters.callsGuest()) {
            result = graphs.setInExec(exec.nativeHandle(), host, parameters.host());
            if (result != 0 && parameters.form() != Form.HOST) {
                graphs.setInExec(exec.nativeHandle(), node.main(), old.node());
            }
        }
        return result;
    }

    /**
     * Enables or disables a node of an executable graph. The backend has no part in a node that only calls the guest.
     */
    int enable(GraphExecState exec, GraphState.Node node, boolean isEnabled) {
        return node.parameters().form() == Form.HOST ? 0
            : graphs.enable(exec.nativeHandle(), node.main(), isEnabled);
    }

    /** Adds or removes dependencies between nodes that the backend has. */
    int edges(GraphState graph, List<Map.Entry<GraphState.Node, GraphState.Node>> links, List<Long> data,
        boolean add) {
        long[] from = links.stream().mapToLong(link -> link.getKey().last()).toArray();
        long[] to = links.stream().mapToLong(link -> link.getValue().first()).toArray();
        return add ? graphs.addEdges(graph.nativeHandle(), from, to, data(data))
            : graphs.removeEdges(graph.nativeHandle(), from, to, data(data));
    }
}
