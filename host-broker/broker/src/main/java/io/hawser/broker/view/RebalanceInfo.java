package io.hawser.broker.view;

import io.hawser.broker.admin.MoveService;
import io.hawser.broker.model.MoveOutcome;
import java.util.List;
import java.util.Optional;

/** What a rebalancing has done; see openapi.yml. */
public record RebalanceInfo(boolean dryRun, List<RebalanceStep> steps) {
    /** A move. */
    public record RebalanceStep(String vgpu, String state, String fromBroker, String from, String toBroker, String to,
        int sessions, long ms, String reason) {
    }

    /** The answer. */
    public static RebalanceInfo of(MoveService.Rebalanced done) {
        return new RebalanceInfo(done.isTrial(), done.steps().stream().map(step -> of(step, done.isTrial())).toList());
    }

    private static RebalanceStep of(MoveService.RebalanceStep made, boolean isTrial) {
        Optional<MoveOutcome> outcome = made.outcome();
        String state = isTrial ? "planned" : outcome.isPresent() ? "moved" : "stayed";
        return new RebalanceStep(made.step().vgpu(), state, made.step().from().broker(), made.step().from().gpu(),
            made.step().to().broker(), made.step().to().gpu(), outcome.map(MoveOutcome::sessions).orElse(0),
            outcome.map(MoveOutcome::ms).orElse(0L), made.reason());
    }
}
