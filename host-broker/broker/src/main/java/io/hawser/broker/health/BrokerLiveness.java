package io.hawser.broker.health;

import io.hawser.broker.LoopPulse;
import jakarta.inject.Inject;
import java.time.Duration;
import org.eclipse.microprofile.health.HealthCheck;
import org.eclipse.microprofile.health.HealthCheckResponse;
import org.eclipse.microprofile.health.Liveness;

/**
 * Down only when a restart of the broker would help: its event loop hangs. A restart would not repair a lost GPU,
 * workers that do not start or an unreachable database; it would only end the running sessions.
 */
@Liveness
public class BrokerLiveness implements HealthCheck {
    /** A restart ends all sessions, so a machine that is only slow must not count as hanging. */
    static final Duration LOOP_LIMIT = Duration.ofSeconds(30);

    @Inject
    LoopPulse pulse;

    @Override
    public HealthCheckResponse call() {
        Duration silence = pulse.silence();
        return HealthCheckResponse.named("event-loop").status(silence.compareTo(LOOP_LIMIT) < 0)
            .withData("silentMs", silence.toMillis()).build();
    }
}
