package io.hawser.worker.session;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** What a session knows of an executable graph. Session thread only. */
public final class GraphExecState {
    /** A node in it. */
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
    private List<Long> retired = new ArrayList<>(); // shares that launches on their way may still need
    private int running;
    private boolean isDestroyed;
    private long checkedRemovals = -1;

    /**
     * Takes a picture of a graph that has been made executable.
     *
     * @param nativeHandle the backend's.
     * @param graph whole.
     * @param callbacks of the session.
     * @param memory of the session.
     */
    public GraphExecState(long nativeHandle, GraphState graph, GraphCallbacks callbacks, GraphMemory memory) {
        this.nativeHandle = nativeHandle;
        this.callbacks = callbacks;
        this.memory = memory;
        collect(graph, nodes);
        for (ExecNode node : nodes) {
            byNode.put(node.node, node);
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
            if (node.child() != null) {
                collect(node.child(), into);
            }
        }
    }

    private void share(GraphParameters parameters) {
        if (parameters.callsGuest()) {
            boolean isCopy = parameters.form() != GraphParameters.Form.HOST;
            int shared = callbacks.share(parameters.callbackId(),
                isCopy ? callbacks.staging(parameters.callbackId()).byteSize() : 0,
                parameters.form() == GraphParameters.Form.WRITE);
            if (shared != 0) {
                throw new IllegalStateException("a node of the graph has a share already: " + shared);
            }
        }
    }

    private void count() {
        callbackIds = nodes.stream().filter(node -> node.isEnabled && node.parameters.callsGuest())
            .mapToLong(node -> node.parameters.callbackId()).toArray();
        checkedRemovals = -1;
    }

    /** The backend's executable graph. */
    public long nativeHandle() {
        return nativeHandle;
    }

    /**
     * What a node does in it.
     *
     * @param node of the graph that it was made from, or of one inside.
     * @return null when the node is not in it.
     */
    public GraphParameters parameters(GraphState.Node node) {
        ExecNode mine = byNode.get(node);
        return mine == null ? null : mine.parameters;
    }

    /**
     * Notes that a node does something else from the next launch on.
     *
     * @param node in it.
     * @param parameters whose share of a callback is this one's from now on.
     */
    public void set(GraphState.Node node, GraphParameters parameters) {
        ExecNode mine = byNode.get(node);
        retire(mine.parameters);
        mine.parameters = parameters.owned();
        count();
    }

    /**
     * Takes over the parameters of a graph of the same form.
     *
     * @param graph whose nodes pair with those here in their order.
     */
    public void update(GraphState graph) {
        List<ExecNode> others = new ArrayList<>();
        collect(graph, others);
        for (int i = 0; i < nodes.size() && i < others.size(); i++) {
            share(others.get(i).parameters);
            retire(nodes.get(i).parameters);
            nodes.get(i).parameters = others.get(i).parameters;
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
     * Has a node executed, or not.
     *
     * @param node in it.
     * @param isEnabled whether it is.
     */
    public void enable(GraphState.Node node, boolean isEnabled) {
        byNode.get(node).isEnabled = isEnabled;
        count();
    }

    /**
     * Whether all that its copies and fills touch is still the session's; looked at when something has been freed since
     * the last time.
     *
     * @param allocations the session's table.
     * @return whether it may be launched.
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
     * Notes a launch, before it.
     *
     * @return the ids by which it calls the guest, to be passed to {@link #ended}; null when nothing waits for its end.
     */
    public long[] launches() {
        if (callbackIds.length == 0) {
            return null;
        }
        running++;
        callbacks.begins();
        for (long id : callbackIds) {
            callbacks.launched(id);
        }
        return callbackIds;
    }

    /** Notes what a launch that was issued allocates and frees. */
    public void launched() {
        allocates.forEach(memory::allocated);
        frees.forEach(memory::freed);
    }

    /**
     * Notes the end of a launch.
     *
     * @param ids of {@link #launches}.
     * @param status CUresult.
     */
    public void ended(long[] ids, int status) {
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
        callbacks.ends();
    }

    /** Gives back what it holds, when its launches are over. */
    public void destroyed() {
        if (isDestroyed) {
            return;
        }
        isDestroyed = true;
        nodes.forEach(node -> retire(node.parameters));
        allocates.forEach(memory::release);
    }
}
