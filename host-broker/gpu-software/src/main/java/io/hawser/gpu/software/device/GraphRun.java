package io.hawser.gpu.software.device;

import io.hawser.cuda.backend.GraphNode;
import io.hawser.cuda.generated.CUgraphConditionalNodeType;
import io.hawser.gpu.software.exec.GlobalMemory;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.Function;
import java.util.function.LongFunction;

/**
 * The work of a plan in one launch. The decoder's thread makes it and issues it. The runs of inner graphs belong to it;
 * conditional nodes issue those of their bodies on any thread, a loop again and again.
 */
final class GraphRun {
    /** A step as it was at the launch: later changes of the executable graph do not affect it. */
    private record Part(Work.Body body, int[] before, Event awaited, Event recorded, List<GraphRun> inner,
        GraphCondition condition, int type) {}

    private final Part[] parts;
    private final int[] order;
    private final Context context;
    private final GlobalMemory memory;

    /**
     * Makes the work of a launch.
     *
     * @param plan the plan, which may change afterwards.
     * @param context the launch's context.
     * @param memory the device's memory.
     * @param bodies makes the work of an enabled step; null for a point.
     * @param events finds an event by its handle; null for none.
     */
    GraphRun(GraphPlan plan, Context context, GlobalMemory memory, Function<GraphPlan.Step, Work.Body> bodies,
        LongFunction<Event> events) {
        this.context = context;
        this.memory = memory;
        order = plan.order;
        parts = new Part[plan.steps.size()];
        for (int i : order) { // as the nodes will execute: libraries keep the order in which they make their work
            GraphPlan.Step step = plan.steps.get(i);
            parts[i] = new Part(step.isEnabled ? bodies.apply(step) : null, step.before,
                step.parameters instanceof GraphNode.EventWait wait ? events.apply(wait.event()) : null,
                step.parameters instanceof GraphNode.EventRecord record ? events.apply(record.event()) : null,
                step.inner.stream().map(inside -> new GraphRun(inside, context, memory, bodies, events)).toList(),
                step.condition, step.conditionalType);
        }
    }

    /**
     * Issues all steps behind a point.
     *
     * @param begin the point; null to begin at once.
     * @return the point that follows them.
     */
    Work issue(Work begin) {
        Work[] works = new Work[parts.length];
        Work end = context.point();
        end.follow(begin);
        for (int index : order) {
            Part part = parts[index];
            Work work = part.body == null ? context.point() : context.work(part.body);
            if (part.before.length == 0) {
                work.follow(begin);
            }
            for (int before : part.before) {
                work.follow(works[before]);
            }
            work.follow(part.awaited == null ? null : part.awaited.recorded());
            work.issue();
            if (part.condition != null) {
                work = decide(part, work);
            } else if (!part.inner.isEmpty()) {
                work = part.inner.getFirst().issue(work);
            } else if (part.recorded != null) {
                part.recorded.record(work, context);
            }
            works[index] = work;
            end.follow(work);
        }
        end.issue();
        return end;
    }

    /** Issues the decision of a conditional node behind a point; returns the point that follows its bodies. */
    private Work decide(Part part, Work begin) {
        Work end = context.point(); // issued by the last decision, so that followers wait until then
        Work decision = context.work(() -> choose(part, end));
        decision.follow(begin);
        decision.issue();
        return end;
    }

    /** Issues the body that the condition chooses. A thread of the scheduler. */
    private void choose(Part part, Work end) {
        boolean isIssued = false;
        try {
            int value = memory.slice(part.condition.address, GraphCondition.BYTES)
                .get(ValueLayout.JAVA_INT_UNALIGNED, 0);
            int at = context.error() != 0 ? -1 : body(part, value);
            if (at < 0) {
                return;
            }
            Work last = part.inner.get(at).issue(null);
            if (part.type == CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE) {
                Work again = context.work(() -> choose(part, end));
                again.follow(last);
                again.issue();
                isIssued = true;
            } else {
                end.follow(last);
            }
        } finally {
            if (!isIssued) {
                end.issue();
            }
        }
    }

    /** Index of the body for a condition's value; -1 for none. */
    private static int body(Part part, int value) {
        int bodies = part.inner.size();
        return switch (part.type) {
            case CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF -> value != 0 ? 0 : bodies == 2 ? 1 : -1;
            case CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE -> value != 0 ? 0 : -1;
            default -> Integer.compareUnsigned(value, bodies) < 0 ? value : -1;
        };
    }
}
