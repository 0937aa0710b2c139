package io.hawser.gpu.software.device;

import io.hawser.cuda.backend.GraphNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** A graph that can be changed. Decoder's thread only. */
final class Graph {
    /** One of its nodes. */
    static final class Node {
        final Graph graph;
        long handle;
        GraphNode parameters;
        /** What the node goes after. */
        final Set<Node> before = new LinkedHashSet<>();
        /** What goes after the node. */
        final Set<Node> after = new LinkedHashSet<>();
        /** The graph inside; null but for a child node. */
        Graph child;
        /** What an allocating node gives; its parameters are those of an empty node. */
        GraphMemory.Block memory;
        /** What a freeing node frees. */
        GraphMemory.Block frees;

        Node(Graph graph, GraphNode parameters) {
            this.graph = graph;
            this.parameters = parameters;
        }
    }

    /** In the order of their creation. */
    final List<Node> nodes = new ArrayList<>();
    final long handle;
    /** Whether it is inside of a node, with which it goes. */
    boolean isInside;

    Graph(long handle) {
        this.handle = handle;
    }

    /** Whether another graph is inside of one of its nodes, however deep. */
    boolean holds(Graph other) {
        for (Node node : nodes) {
            if (node.child != null && (node.child == other || node.child.holds(other))) {
                return true;
            }
        }
        return false;
    }

    /** Adds a dependency; false when it is there, or would make a node wait for itself. */
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
