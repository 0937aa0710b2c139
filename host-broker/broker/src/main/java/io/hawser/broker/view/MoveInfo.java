package io.hawser.broker.view;

import io.hawser.broker.model.MoveOutcome;

/** A vGPU that has moved to another GPU; see openapi.yml. */
public record MoveInfo(String vgpu, String from, String to, int sessions, long ms) {
    /** The answer for a move that has succeeded. */
    public static MoveInfo of(MoveOutcome outcome) {
        return new MoveInfo(outcome.vgpu(), outcome.from(), outcome.to(), outcome.sessions(), outcome.ms());
    }
}
