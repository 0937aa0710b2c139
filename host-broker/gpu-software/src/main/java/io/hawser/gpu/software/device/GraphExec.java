package io.hawser.gpu.software.device;

import io.hawser.cuda.backend.GraphNode;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;

/** An executable graph. Decoder's thread only. */
final class GraphExec {
    /** CU_GRAPH_EXEC_UPDATE_...: CUgraphExecUpdateResult, CUDA 13.0 cuda.h. */
    static final int TOPOLOGY_CHANGED = 2;
    static final int NODE_TYPE_CHANGED = 3;
    static final int PARAMETERS_CHANGED = 5;

    final GraphPlan plan;
    final long flags;
    /** Memory that launches of this graph allocate. */
    final Set<GraphMemory.Block> memories = new LinkedHashSet<>();
    /** Conditions that launches of this graph read. */
    final Set<GraphCondition> conditions = new LinkedHashSet<>();
    /** The end of the previous launch; null before the first. */
    Work last;

    GraphExec(GraphPlan plan, long flags) {
        this.plan = plan;
        this.flags = flags;
        plan.forEach(step -> {
            if (step.memory != null) {
                memories.add(step.memory);
            }
        });
    }

    /** A difference between two plans: a CUgraphExecUpdateResult and a node of the new plan. */
    record Difference(int result, long node) {}

    /** The reason that another plan's parameters cannot replace this plan's; null when they can. */
    static Difference difference(GraphPlan mine, GraphPlan other) {
        if (mine.steps.size() != other.steps.size()) {
            return new Difference(TOPOLOGY_CHANGED, 0);
        }
        for (int i = 0; i < mine.steps.size(); i++) {
            GraphPlan.Step own = mine.steps.get(i);
            GraphPlan.Step theirs = other.steps.get(i);
            if (!Arrays.equals(own.before, theirs.before)) {
                return new Difference(TOPOLOGY_CHANGED, theirs.node);
            }
            if (own.parameters.getClass() != theirs.parameters.getClass()) {
                return new Difference(NODE_TYPE_CHANGED, theirs.node);
            }
            if ((own.condition == null) != (theirs.condition == null)
                || (own.routine == null) != (theirs.routine == null)) {
                return new Difference(NODE_TYPE_CHANGED, theirs.node);
            }
            if (own.conditionalType != theirs.conditionalType || own.inner.size() != theirs.inner.size()) {
                return new Difference(PARAMETERS_CHANGED, theirs.node);
            }
            if (own.memory != theirs.memory || !sameKind(own.parameters, theirs.parameters)) {
                return new Difference(PARAMETERS_CHANGED, theirs.node);
            }
            for (int j = 0; j < own.inner.size(); j++) {
                Difference inside = difference(own.inner.get(j), theirs.inner.get(j));
                if (inside != null) {
                    return inside;
                }
            }
        }
        return null;
    }

    /** Whether a node accepts new parameters: CUDA requires a copy to keep the kinds of its memory. */
    static boolean sameKind(GraphNode mine, GraphNode other) {
        return !(mine instanceof GraphNode.Copy own && other instanceof GraphNode.Copy theirs)
            || own.source().isHost() == theirs.source().isHost()
                && own.destination().isHost() == theirs.destination().isHost();
    }

    /** Replaces this plan's parameters with those of a plan without a {@link #difference}. */
    static void replaceParameters(GraphPlan mine, GraphPlan other) {
        for (int i = 0; i < mine.steps.size(); i++) {
            GraphPlan.Step own = mine.steps.get(i);
            GraphPlan.Step theirs = other.steps.get(i);
            own.parameters = theirs.parameters;
            own.condition = theirs.condition;
            own.routine = theirs.routine;
            for (int j = 0; j < own.inner.size(); j++) {
                replaceParameters(own.inner.get(j), theirs.inner.get(j));
            }
        }
    }
}
