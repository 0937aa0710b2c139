package io.hawser.worker.session;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** A session's record of an executable graph. Session thread only. */
public final class GraphExecState {
    /** A node of the executable graph. */
    private static final class ExecNode {
        final GraphState.Node node;
        GraphParameters parameters;
        boolean isEnabled = true;

        ExecNode(GraphState.Node node) {
            this.node = node;
            this.parameters = node.parameters();
        }
    }

    private final long nativeHandle;
    private final GraphCallbacks callbacks;
    private final GraphMemory memory;
    private final List<ExecNode> nodes = new ArrayList<>();
    private final Map<GraphState.Node, ExecNode> byNode = new IdentityHashMap<>();
    private final List<GraphMemory.Block> allocates = new ArrayList<>();
    private final List<GraphMemory.Block> frees = new ArrayList<>();
    private long[] callbackIds = {};
    private GraphState.Waits waits = GraphState.Waits.FOR_NOTHING;
    private List<Long> retired = new ArrayList<>(); // ids that running launches may still use; released after them
    private int running;
    private boolean isDestroyed;
    private long checkedRemovals = -1;

    /**
     * Records a graph that the backend has made executable.
     *
     * @param nativeHandle the backend's handle.
     * @param graph the complete graph.
     * @param callbacks the session's callbacks.
     * @param memory the session's memory of graphs.
     */
    public GraphExecState(long nativeHandle, GraphState graph, GraphCallbacks callbacks, GraphMemory memory) {
        this.nativeHandle = nativeHandle;
        this.callbacks = callbacks;
        this.memory = memory;
        collect(graph, nodes);
        for (ExecNode node : nodes) {
            byNode.put(node.node, node);
            waits = waits.and(waitsOf(node.node));
            share(node.parameters);
            if (node.node.memory() != null) {
                memory.hold(node.node.memory());
                allocates.add(node.node.memory());
            }
            if (node.node.frees() != null) {
                frees.add(node.node.frees());
            }
        }
        count();
    }

    private static void collect(GraphState graph, List<ExecNode> into) {
        for (GraphState.Node node : graph.nodes().values()) {
            into.add(new ExecNode(node));
            node.inner().forEach(inside -> collect(inside, into));
        }
    }

    private static GraphState.Waits waitsOf(GraphState.Node node) {
        GraphState.Waits waits = GraphState.Waits.FOR_NOTHING;
        for (GraphState inside : node.inner()) {
            waits = waits.and(inside.waits());
        }
        return waits;
    }

    private void share(GraphParameters parameters) {
        if (parameters.callsGuest()) {
            boolean isCopy = parameters.form() != GraphParameters.Form.HOST;
            int shared = callbacks.share(parameters.callbackId(),
                isCopy ? callbacks.staging(parameters.callbackId()).byteSize() : 0,
                parameters.form() == GraphParameters.Form.WRITE);
            if (shared != 0) {
                throw new IllegalStateException("a node of the graph must already be a user of its id: " + shared);
            }
        }
    }

    private void count() {
        callbackIds = nodes.stream().filter(node -> node.isEnabled && node.parameters.callsGuest())
            .mapToLong(node -> node.parameters.callbackId()).toArray();
        checkedRemovals = -1;
    }

    /** Returns what the kernels of a launch may wait for. */
    public GraphState.Waits waits() {
        return waits;
    }

    /** The backend's executable graph. */
    public long nativeHandle() {
        return nativeHandle;
    }

    /**
     * The current parameters of a node.
     *
     * @param node a node of the original graph, or of a graph inside it.
     * @return null when the executable graph does not have the node.
     */
    public GraphParameters parameters(GraphState.Node node) {
        ExecNode mine = byNode.get(node);
        return mine == null ? null : mine.parameters;
    }

    /**
     * Replaces the parameters of a node for later launches.
     *
     * @param node a node of this executable graph.
     * @param parameters the new ones; this object takes over their use of a callback id.
     */
    public void set(GraphState.Node node, GraphParameters parameters) {
        ExecNode mine = byNode.get(node);
        retire(mine.parameters);
        mine.parameters = parameters.owned();
        count();
    }

    /**
     * Takes over the parameters of a graph with the same topology.
     *
     * @param graph its nodes correspond to the nodes here, in order.
     */
    public void update(GraphState graph) {
        List<ExecNode> others = new ArrayList<>();
        collect(graph, others);
        for (int i = 0; i < nodes.size() && i < others.size(); i++) {
            share(others.get(i).parameters);
            retire(nodes.get(i).parameters);
            nodes.get(i).parameters = others.get(i).parameters;
            waits = waits.and(waitsOf(others.get(i).node));
        }
        count();
    }

    private void retire(GraphParameters parameters) {
        if (!parameters.callsGuest()) {
            return;
        }
        if (running == 0) {
            callbacks.release(parameters.callbackId());
        } else {
            retired.add(parameters.callbackId());
        }
    }

    /**
     * Enables or disables a node.
     *
     * @param node a node of this executable graph.
     * @param isEnabled whether launches execute it.
     */
    public void enable(GraphState.Node node, boolean isEnabled) {
        byNode.get(node).isEnabled = isEnabled;
        count();
    }

    /**
     * Whether the session still owns all memory that the graph's copies and fills use. Checks again only after a
     * removal.
     *
     * @param allocations the session's table.
     * @return whether the graph may be launched.
     */
    public boolean isAllowed(AllocationMap allocations) {
        if (checkedRemovals == allocations.removals()) {
            return true;
        }
        for (ExecNode node : nodes) {
            if (!node.parameters.isAllowed(allocations)) {
                return false;
            }
        }
        checkedRemovals = allocations.removals();
        return true;
    }

    /**
     * Records the start of a launch, before it is issued.
     *
     * @return the ids by which it calls the guest, for {@link #endLaunch}; null when the caller need not call that.
     */
    public long[] beginLaunch() {
        if (callbackIds.length == 0) {
            return null;
        }
        running++;
        callbacks.launchBegins();
        for (long id : callbackIds) {
            callbacks.launched(id);
        }
        return callbackIds;
    }

    /** Records the memory that an issued launch allocates and frees. */
    public void recordMemory() {
        allocates.forEach(memory::allocated);
        frees.forEach(memory::freed);
    }

    /**
     * Records the end of a launch.
     *
     * @param ids result of {@link #beginLaunch}.
     * @param status CUresult.
     */
    public void endLaunch(long[] ids, int status) {
        for (long id : ids) {
            if (status != 0) {
                callbacks.failed(id, status);
            }
        }
        running--;
        if (running == 0) {
            List<Long> released = retired;
            retired = new ArrayList<>();
            released.forEach(callbacks::release);
        }
        callbacks.launchEnds();
    }

    /** Releases its callbacks and memory, the callbacks after its running launches. */
    public void release() {
        if (isDestroyed) {
            return;
        }
        isDestroyed = true;
        nodes.forEach(node -> retire(node.parameters));
        allocates.forEach(memory::release);
    }
}
