package io.hawser.gpu.software.device;

import io.hawser.cuda.backend.GraphNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** A snapshot of a graph's nodes, taken when the graph or its parent was instantiated. Decoder's thread only. */
final class GraphPlan {
    /** One node. */
    static final class Step {
        final long node;
        GraphNode parameters;
        final int[] before; // indices in steps
        final List<GraphPlan> inner;
        final int conditionalType;
        final GraphMemory.Block memory;
        final GraphMemory.Block frees;
        GraphCondition condition;
        Supplier<Runnable> routine;
        boolean isEnabled = true;
        /** Workspace of a cooperative kernel; 0 until the first launch. */
        long workspace;

        Step(Graph.Node node, int[] before, List<GraphPlan> inner) {
            this.node = node.handle;
            this.parameters = node.parameters;
            this.before = before;
            this.inner = inner;
            this.condition = node.condition;
            this.conditionalType = node.conditionalType;
            this.memory = node.memory;
            this.frees = node.frees;
            this.routine = node.routine;
        }
    }

    /** In the order of the nodes' creation, which the comparison of two graphs uses. */
    final List<Step> steps = new ArrayList<>();
    /** Indices in a topological order: each step comes after the steps that it depends on. */
    final int[] order;

    private GraphPlan(int nodes) {
        order = new int[nodes];
    }

    /** The plan of a graph, or null when its dependencies form a cycle. */
    static GraphPlan of(Graph graph) {
        GraphPlan plan = new GraphPlan(graph.nodes.size());
        Map<Graph.Node, Integer> index = new HashMap<>();
        for (Graph.Node node : graph.nodes) {
            index.put(node, index.size());
        }
        int[] missing = new int[plan.order.length];
        ArrayDeque<Integer> ready = new ArrayDeque<>();
        for (Graph.Node node : graph.nodes) {
            List<GraphPlan> inner = new ArrayList<>();
            for (Graph graphInside : node.inner) {
                GraphPlan inside = of(graphInside);
                if (inside == null) {
                    return null;
                }
                inner.add(inside);
            }
            int[] before = node.before.stream().mapToInt(index::get).sorted().toArray();
            missing[plan.steps.size()] = before.length;
            if (before.length == 0) {
                ready.add(plan.steps.size());
            }
            plan.steps.add(new Step(node, before, inner));
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

    /** Applies an action to each step, including those of inner graphs. */
    void forEach(Consumer<Step> action) {
        for (Step step : steps) {
            action.accept(step);
            step.inner.forEach(inside -> inside.forEach(action));
        }
    }

    /** The conditions of its conditional nodes, including those in inner graphs. */
    Set<GraphCondition> conditions() {
        Set<GraphCondition> all = new LinkedHashSet<>();
        forEach(step -> {
            if (step.condition != null) {
                all.add(step.condition);
            }
        });
        return all;
    }

    /** The step of a node, searched in inner graphs as well; null when there is none. */
    Step find(long node) {
        for (Step step : steps) {
            if (step.node == node) {
                return step;
            }
            for (GraphPlan inner : step.inner) {
                Step inside = inner.find(node);
                if (inside != null) {
                    return inside;
                }
            }
        }
        return null;
    }
}
