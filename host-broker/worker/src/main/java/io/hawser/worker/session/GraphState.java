package io.hawser.worker.session;

import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.HandleKind;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** The worker's mirror of a guest's graph. Session thread only. */
public final class GraphState {
    /** A node of the graph. */
    public static final class Node {
        private final GraphState graph;
        private final int index;
        private final Map<Node, Long> before = new LinkedHashMap<>();
        private final Set<Node> after = new LinkedHashSet<>();
        private GraphParameters parameters;
        private long first;
        private long last;
        private final List<GraphState> inner = new ArrayList<>();
        private GraphMemory.Block memory;
        private GraphMemory.Block frees;

        /**
         * Makes a node that only the graph's table has.
         *
         * @param graph the node's graph.
         * @param index the guest's number of the node.
         */
        public Node(GraphState graph, int index) {
            this.graph = graph;
            this.index = index;
        }

        /** The graph that it belongs to. */
        public GraphState graph() {
            return graph;
        }

        /** The guest's number of the node. */
        public int index() {
            return index;
        }

        /** The nodes that it depends on, each with its CUgraphEdgeData as a number. */
        public Map<Node, Long> before() {
            return before;
        }

        /** The nodes that depend on it. */
        public Set<Node> after() {
            return after;
        }

        /** Its parameters; null when its creation failed. */
        public GraphParameters parameters() {
            return parameters;
        }

        /** The backend's node that takes the node's own dependencies; 0 when its creation failed. */
        public long first() {
            return first;
        }

        /** The backend's node that dependent nodes depend on. */
        public long last() {
            return last;
        }

        /** The backend's node with the guest's parameters. */
        public long main() {
            return parameters.form() == GraphParameters.Form.WRITE ? last : first;
        }

        /** The graphs inside the node: one of a child node, the bodies of a conditional node. */
        public List<GraphState> inner() {
            return inner;
        }

        /** The memory of an allocating node, or null. */
        public GraphMemory.Block memory() {
            return memory;
        }

        /** The memory that a freeing node frees, or null. */
        public GraphMemory.Block frees() {
            return frees;
        }

        /** Whether the backend has the node. */
        public boolean isMade() {
            return first != 0;
        }

        /** Sets its parameters and the backend's nodes. */
        public void made(GraphParameters made, long firstNode, long lastNode) {
            parameters = made.owned();
            first = firstNode;
            last = lastNode;
        }

        /** Replaces its parameters. */
        public void parameters(GraphParameters changed) {
            parameters = changed.owned();
        }

        /** Adds a graph inside the node. */
        public void addInner(GraphState inside) {
            inner.add(inside);
            inside.outer = this;
            if (inside.usesMemory) {
                graph.markMemory();
            }
        }

        /** Sets the memory that it allocates. */
        public void memory(GraphMemory.Block block) {
            memory = block;
            graph.markMemory();
        }

        /** Sets the memory that it frees. */
        public void frees(GraphMemory.Block block) {
            frees = block;
            graph.markMemory();
            graph.freesMemory = true;
        }
    }

    private final long id;
    private final long nativeHandle;
    private final TreeMap<Integer, Node> nodes = new TreeMap<>(Integer::compareUnsigned);
    private Node outer;
    private final Set<Long> conditions = new HashSet<>();
    private boolean usesMemory;
    private boolean freesMemory;
    private int error;
    private boolean isGone;
    private Captured captured;

    /** The things that kernels wait for while they run. */
    public enum Waits {
        /** Nothing. */
        FOR_NOTHING,
        /** Ranks of NCCL in other processes. */
        FOR_PROCESSES,
        /** Ranks of NCCL, some of which are threads of the same guest process. */
        FOR_THREADS;

        /** This, or the other one if that includes this. */
        public Waits and(Waits other) {
            return compareTo(other) < 0 ? other : this;
        }
    }

    /**
     * What a captured graph holds.
     *
     * @param ranges memory that its nodes use.
     * @param nodes number of the backend's nodes.
     * @param waits what its kernels wait for.
     */
    public record Captured(List<GraphParameters.Range> ranges, int nodes, Waits waits) {}

    /**
     * Makes the mirror of an empty graph.
     *
     * @param id the guest's id of the graph.
     * @param nativeHandle the backend's handle.
     */
    public GraphState(long id, long nativeHandle) {
        this.id = id;
        this.nativeHandle = nativeHandle;
    }

    /**
     * Makes the mirror of a graph that a library's call has made. It has nodes that no one can name.
     *
     * @param id the guest's id of the graph.
     * @param nativeHandle the backend's handle.
     * @param captured its content.
     * @param usesMemory whether its nodes allocate memory.
     */
    public GraphState(long id, long nativeHandle, Captured captured, boolean usesMemory) {
        this(id, nativeHandle);
        this.captured = captured;
        this.usesMemory = usesMemory;
    }

    /** The content of a captured graph; null for a graph of the guest's nodes. */
    public Captured captured() {
        return captured;
    }

    /** Returns what the kernels of a captured graph wait for; nothing for a graph of the guest's nodes. */
    public Waits waits() {
        return captured == null ? Waits.FOR_NOTHING : captured.waits();
    }

    /** Whether the graph is a body of a conditional node, or inside one. */
    public boolean isBody() {
        return outer != null && (outer.parameters().type() == CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
            || outer.graph.isBody());
    }

    /** The guest's id of the graph. */
    public long id() {
        return id;
    }

    /** The backend's graph. */
    public long nativeHandle() {
        return nativeHandle;
    }

    /** Its nodes by index, unsigned. */
    public TreeMap<Integer, Node> nodes() {
        return nodes;
    }

    /** The node that contains this graph, or null. */
    public Node outer() {
        return outer;
    }

    /** The handles of conditions that were made for this graph. */
    public Set<Long> conditions() {
        return conditions;
    }

    /** Whether a node of this graph can have a condition: one of this graph's, or of a graph that contains it. */
    public boolean mayUse(long condition) {
        for (GraphState graph = this; graph != null; graph = graph.outer == null ? null : graph.outer.graph) {
            if (graph.conditions.contains(condition)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Whether nodes of this graph, or of a graph inside it, allocate or free memory. CUDA removes no node of such a
     * graph.
     */
    public boolean usesMemory() {
        return usesMemory;
    }

    private void markMemory() {
        for (GraphState graph = this; graph != null; graph = graph.outer == null ? null : graph.outer.graph) {
            graph.usesMemory = true;
        }
    }

    /** Whether nodes free memory. An allocating node may then get memory that other nodes have too. */
    public boolean freesMemory() {
        return freesMemory;
    }

    /** Whether a graph is this one or inside it. */
    public boolean holds(GraphState other) {
        for (GraphState graph = other; graph != null; graph = graph.outer == null ? null : graph.outer.graph) {
            if (graph == this) {
                return true;
            }
        }
        return false;
    }

    /** The first CUresult from a failed creation of one of the graph's parts; 0 when all succeeded. */
    public int error() {
        return error;
    }

    /** Records that the creation of a part failed. */
    public void failed(int cuResult) {
        error = error == 0 ? cuResult : error;
    }

    /** Whether the graph has been destroyed. */
    public boolean isGone() {
        return isGone;
    }

    /** Records that the graph, or a graph that contains it, has been destroyed. */
    public void markGone() {
        isGone = true;
        nodes.clear();
    }

    /**
     * Finds the node for one of the backend's nodes.
     *
     * @param node the backend's node, 0 for none.
     * @return the node of this graph or of a graph inside it; null when there is none.
     */
    public Node find(long node) {
        for (Node mine : nodes.values()) {
            if (node != 0 && (mine.first == node || mine.last == node)) {
                return mine;
            }
            for (GraphState inside : mine.inner) {
                Node found = inside.find(node);
                if (found != null) {
                    return found;
                }
            }
        }
        return null;
    }

    /** Destroys the remaining graphs at the end of a session. */
    static void closeAll(HandleTable handles, GraphBackend backend) {
        for (Handle exec : handles.all(HandleKind.GRAPH_EXEC)) {
            if (!exec.isFailed()) {
                backend.destroyExec(exec.nativeHandle());
            }
        }
        for (Handle graph : handles.all(HandleKind.GRAPH)) {
            GraphState state = graph.info(GraphState.class);
            if (!graph.isFailed() && !state.isGone && state.outer == null) {
                backend.destroy(graph.nativeHandle());
            }
        }
    }
}
