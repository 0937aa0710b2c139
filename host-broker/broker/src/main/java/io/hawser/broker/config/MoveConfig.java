package io.hawser.broker.config;

import io.smallrye.config.WithDefault;
import java.time.Duration;

/** Moves of running sessions to another GPU. */
public interface MoveConfig {
    /**
     * How long a move waits for an answer of a worker, beside one second for each GiB that the vGPU's sessions hold.
     * Then the sessions stay on their GPU. Range: 1ms or more.
     */
    @WithDefault("30s")
    Duration answerTimeout();
}
