package io.hawser.worker.session;

import io.hawser.cuda.backend.GraphBackend;
import io.hawser.cuda.generated.HandleKind;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** The mirror of a guest's graph. Session thread only. */
public final class GraphState {
    /** One of its nodes. */
    public static final class Node {
        private final GraphState graph;
        private final int index;
        private final Map<Node, Long> before = new LinkedHashMap<>();
        private final Set<Node> after = new LinkedHashSet<>();
        private GraphParameters parameters;
        private long first;
        private long last;
        private GraphState child;
        private GraphMemory.Block memory;
        private GraphMemory.Block frees;

        /**
         * Makes a node that is in the graph's table only.
         *
         * @param graph of the node.
         * @param index the guest's name of it.
         */
        public Node(GraphState graph, int index) {
            this.graph = graph;
            this.index = index;
        }

        /** The graph that it belongs to. */
        public GraphState graph() {
            return graph;
        }

        /** The guest's name of it. */
        public int index() {
            return index;
        }

        /** What it goes after, with the CUgraphEdgeData of each as a number. */
        public Map<Node, Long> before() {
            return before;
        }

        /** What goes after it. */
        public Set<Node> after() {
            return after;
        }

        /** What it does; null when it could not be made. */
        public GraphParameters parameters() {
            return parameters;
        }

        /** The backend's node on which others' dependencies begin; 0 when it could not be made. */
        public long first() {
            return first;
        }

        /** The backend's node on which others depend. */
        public long last() {
            return last;
        }

        /** The backend's node with the guest's parameters. */
        public long main() {
            return parameters.form() == GraphParameters.Form.WRITE ? last : first;
        }

        /** The graph inside, or null. */
        public GraphState child() {
            return child;
        }

        /** What an allocating node gives, or null. */
        public GraphMemory.Block memory() {
            return memory;
        }

        /** The memory that a freeing node frees, or null. */
        public GraphMemory.Block frees() {
            return frees;
        }

        /** Whether the backend has it. */
        public boolean isMade() {
            return first != 0;
        }

        /** Notes what it does and the backend's nodes for it. */
        public void made(GraphParameters made, long firstNode, long lastNode) {
            parameters = made.owned();
            first = firstNode;
            last = lastNode;
        }

        /** Notes that it does something else. */
        public void parameters(GraphParameters changed) {
            parameters = changed.owned();
        }

        /** Notes the graph inside. */
        public void child(GraphState inside) {
            child = inside;
            inside.outer = this;
            if (inside.usesMemory) {
                graph.markMemory();
            }
        }

        /** Notes what it allocates. */
        public void memory(GraphMemory.Block block) {
            memory = block;
            graph.markMemory();
        }

        /** Notes what it frees. */
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
    private boolean usesMemory;
    private boolean freesMemory;
    private int error;
    private boolean isGone;

    /**
     * Makes the mirror of an empty graph.
     *
     * @param id the guest's name of it.
     * @param nativeHandle the backend's.
     */
    public GraphState(long id, long nativeHandle) {
        this.id = id;
        this.nativeHandle = nativeHandle;
    }

    /** The guest's name of it. */
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

    /** The node that it is inside of, or null. */
    public Node outer() {
        return outer;
    }

    /** Whether nodes of the graph, or of one inside, allocate or free memory: CUDA removes no node of such a graph. */
    public boolean usesMemory() {
        return usesMemory;
    }

    private void markMemory() {
        for (GraphState graph = this; graph != null; graph = graph.outer == null ? null : graph.outer.graph) {
            graph.usesMemory = true;
        }
    }

    /** Whether nodes free memory, so that an allocating node may be given memory that others have. */
    public boolean freesMemory() {
        return freesMemory;
    }

    /** Whether a graph is this one or inside of it. */
    public boolean holds(GraphState other) {
        for (GraphState graph = other; graph != null; graph = graph.outer == null ? null : graph.outer.graph) {
            if (graph == this) {
                return true;
            }
        }
        return false;
    }

    /** The first CUresult that a part of the graph could not be made for; 0 when it is whole. */
    public int error() {
        return error;
    }

    /** Notes that a part could not be made. */
    public void failed(int cuResult) {
        error = error == 0 ? cuResult : error;
    }

    /** Whether it has been destroyed. */
    public boolean isGone() {
        return isGone;
    }

    /** Notes that it has been destroyed, or was inside of what has been. */
    public void gone() {
        isGone = true;
        nodes.clear();
    }

    /**
     * The node that the backend means.
     *
     * @param node the backend's, 0 for none.
     * @return the node of this graph or of one inside; null when there is none.
     */
    public Node find(long node) {
        for (Node mine : nodes.values()) {
            if (node != 0 && (mine.first == node || mine.last == node)) {
                return mine;
            }
            Node inside = mine.child == null ? null : mine.child.find(node);
            if (inside != null) {
                return inside;
            }
        }
        return null;
    }

    /** Destroys at the end of a session what is left. */
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
