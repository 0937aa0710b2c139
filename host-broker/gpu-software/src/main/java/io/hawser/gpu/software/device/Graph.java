package io.hawser.gpu.software.device;

import io.hawser.cuda.backend.GraphNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

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
        /** The child graph; null except for a child node. */
        Graph child;
        /** The memory of an allocating node, whose parameters are those of an empty node. */
        GraphMemory.Block memory;
        /** The memory that a freeing node frees. */
        GraphMemory.Block frees;

        Node(Graph graph, GraphNode parameters) {
            this.graph = graph;
            this.parameters = parameters;
        }
    }

    /** In the order of their creation. */
    final List<Node> nodes = new ArrayList<>();
    final long handle;
    /** Whether the graph is the child of a node, which then owns it. */
    boolean isInside;

    Graph(long handle) {
        this.handle = handle;
    }

    /** Whether another graph is inside one of its nodes, at any depth. */
    boolean holds(Graph other) {
        for (Node node : nodes) {
            if (node.child != null && (node.child == other || node.child.holds(other))) {
                return true;
            }
        }
        return false;
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
