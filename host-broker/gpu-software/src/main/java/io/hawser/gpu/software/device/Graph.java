package io.hawser.gpu.software.device;

import io.hawser.cuda.backend.GraphNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/** A graph before instantiation. Decoder's thread only. */
final class Graph {
    /** A node of the graph. */
    static final class Node {
        final Graph graph;
        long handle;
        GraphNode parameters;
        /** The nodes that this node depends on. */
        final Set<Node> before = new LinkedHashSet<>();
        /** The nodes that depend on this node. */
        final Set<Node> after = new LinkedHashSet<>();
        /** The graphs inside: one of a child node, the bodies of a conditional node. */
        final List<Graph> inner = new ArrayList<>();
        /** The condition of a conditional node, whose parameters are those of an empty node; null for another node. */
        GraphCondition condition;
        /** CUgraphConditionalNodeType of a conditional node. */
        int conditionalType;
        /** The memory of an allocating node, whose parameters are those of an empty node. */
        GraphMemory.Block memory;
        /** The memory that a freeing node frees. */
        GraphMemory.Block frees;
        /**
         * Makes what a library does in a captured node at a launch; null for other nodes. The parameters are those of
         * an empty node.
         */
        Supplier<Runnable> routine;

        Node(Graph graph, GraphNode parameters) {
            this.graph = graph;
            this.parameters = parameters;
        }
    }

    /** In the order of their creation. */
    final List<Node> nodes = new ArrayList<>();
    final long handle;
    final Map<Long, GraphCondition> conditions = new HashMap<>(); // by handle
    /** The node that contains and owns the graph, or null. */
    Node owner;

    Graph(long handle) {
        this.handle = handle;
    }

    /** Whether another graph is inside one of its nodes, at any depth. */
    boolean holds(Graph other) {
        return other.owner != null && (other.owner.graph == this || holds(other.owner.graph));
    }

    /** Whether the graph is a body of a conditional node, or inside one. */
    boolean isBody() {
        return owner != null && (owner.condition != null || owner.graph.isBody());
    }

    /** Whether CUDA allows a node with these parameters in the graph: a body of a conditional node takes few types. */
    boolean mayContain(GraphNode parameters) {
        return !isBody() || parameters instanceof GraphNode.Kernel || parameters instanceof GraphNode.Copy
            || parameters instanceof GraphNode.Fill || parameters instanceof GraphNode.Empty
            || parameters instanceof GraphNode.Child;
    }

    /** Whether the graph or a graph inside it has a conditional node. */
    boolean isConditional() {
        return nodes.stream().anyMatch(node -> node.condition != null
            || node.inner.stream().anyMatch(Graph::isConditional));
    }

    /** A condition of this graph or of a graph that contains it; null for another handle. */
    GraphCondition condition(long handle) {
        GraphCondition own = conditions.get(handle);
        return own != null || owner == null ? own : owner.graph.condition(handle);
    }

    /** Adds a dependency; false when it exists, or when it would make a node wait for itself. */
    static boolean link(Node from, Node to) {
        if (from == to || !to.before.add(from)) {
            return false;
        }
        from.after.add(to);
        return true;
    }

    /** Removes a dependency; false when there is none. */
    static boolean unlink(Node from, Node to) {
        return to.before.remove(from) && from.after.remove(to);
    }

    /** Removes a node with its dependencies. */
    void remove(Node node) {
        node.before.forEach(other -> other.after.remove(node));
        node.after.forEach(other -> other.before.remove(node));
        nodes.remove(node);
    }
}
