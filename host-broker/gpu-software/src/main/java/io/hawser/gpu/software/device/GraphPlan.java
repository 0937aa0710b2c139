package io.hawser.gpu.software.device;

import io.hawser.cuda.backend.GraphNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** The nodes of a graph as they were when it was made executable, or those of a graph inside. Decoder's thread only. */
final class GraphPlan {
    /** One node. */
    static final class Step {
        final long node;
        GraphNode parameters;
        final int[] before; // indices in steps
        final GraphPlan child;
        final GraphMemory.Block memory;
        final GraphMemory.Block frees;
        boolean isEnabled = true;
        /** Of a cooperative kernel; 0 until it is needed. */
        long workspace;

        Step(Graph.Node node, int[] before, GraphPlan child) {
            this.node = node.handle;
            this.parameters = node.parameters;
            this.before = before;
            this.child = child;
            this.memory = node.memory;
            this.frees = node.frees;
        }
    }

    /** In the order of the nodes' creation, by which two graphs are compared. */
    final List<Step> steps = new ArrayList<>();
    /** Indices in an order in which each comes after those that it goes after. */
    final int[] order;

    private GraphPlan(int nodes) {
        order = new int[nodes];
    }

    /** The plan of a graph, or null when its dependencies have a circle. */
    static GraphPlan of(Graph graph) {
        GraphPlan plan = new GraphPlan(graph.nodes.size());
        Map<Graph.Node, Integer> index = new HashMap<>();
        for (Graph.Node node : graph.nodes) {
            index.put(node, index.size());
        }
        int[] missing = new int[plan.order.length];
        ArrayDeque<Integer> ready = new ArrayDeque<>();
        for (Graph.Node node : graph.nodes) {
            GraphPlan child = node.child == null ? null : of(node.child);
            if (node.child != null && child == null) {
                return null;
            }
            int[] before = node.before.stream().mapToInt(index::get).sorted().toArray();
            missing[plan.steps.size()] = before.length;
            if (before.length == 0) {
                ready.add(plan.steps.size());
            }
            plan.steps.add(new Step(node, before, child));
        }
        int ordered = 0;
        while (!ready.isEmpty()) {
            int next = ready.poll();
            plan.order[ordered++] = next;
            for (Graph.Node follower : graph.nodes.get(next).after) {
                if (--missing[index.get(follower)] == 0) {
                    ready.add(index.get(follower));
                }
            }
        }
        return ordered == plan.order.length ? plan : null;
    }

    /** Does something with each step, also of graphs inside. */
    void forEach(Consumer<Step> action) {
        for (Step step : steps) {
            action.accept(step);
            if (step.child != null) {
                step.child.forEach(action);
            }
        }
    }

    /** The step of a node, also of graphs inside; null when there is none. */
    Step find(long node) {
        for (Step step : steps) {
            if (step.node == node) {
                return step;
            }
            Step inside = step.child == null ? null : step.child.find(node);
            if (inside != null) {
                return inside;
            }
        }
        return null;
    }
}
