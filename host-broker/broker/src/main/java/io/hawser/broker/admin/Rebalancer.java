package io.hawser.broker.admin;

import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.vgpu.Rebalancing;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.BiFunction;
import org.jboss.logging.Logger;

/** Carries out the plan of a rebalancing. A vGPU that cannot move stays, and the plan goes on without its move. */
final class Rebalancer {
    private static final Logger LOG = Logger.getLogger(Rebalancer.class);

    private final BiFunction<String, MoveService.Wish, CompletableFuture<MoveOutcome>> move;

    Rebalancer(BiFunction<String, MoveService.Wish, CompletableFuture<MoveOutcome>> move) {
        this.move = move;
    }

    /** Makes the moves of a plan. */
    CompletableFuture<MoveService.Rebalanced> run(Rebalancing plan, boolean isTrial, int limit) {
        // In a thread of its own, which waits: a plan of a large pool computes for seconds.
        return CompletableFuture.supplyAsync(() -> {
            List<MoveService.RebalanceStep> steps = new ArrayList<>();
            while (steps.size() < limit) {
                Optional<Rebalancing.Step> step = plan.next();
                if (step.isEmpty()) {
                    break;
                }
                steps.add(isTrial ? new MoveService.RebalanceStep(step.get(), Optional.empty(), "")
                    : done(plan, step.get()));
            }
            LOG.infof("rebalanced: %s=%d", isTrial ? "planned" : "steps", steps.size());
            return new MoveService.Rebalanced(isTrial, steps);
        }, Thread::startVirtualThread);
    }

    private MoveService.RebalanceStep done(Rebalancing plan, Rebalancing.Step step) {
        String broker = step.to().broker();
        try {
            MoveOutcome outcome = move.apply(step.vgpu(), new MoveService.Wish(step.to().gpu(), broker.isEmpty() ? null
                : broker)).join();
            return new MoveService.RebalanceStep(step, Optional.of(outcome), "");
        } catch (CompletionException e) {
            plan.undo();
            return new MoveService.RebalanceStep(step, Optional.empty(), MoveService.reason(step.vgpu(), e));
        }
    }
}
