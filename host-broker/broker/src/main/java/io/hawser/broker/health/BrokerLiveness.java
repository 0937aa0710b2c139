package io.hawser.broker.health;

import io.hawser.broker.Broker;
import io.hawser.broker.RunningBroker;
import jakarta.inject.Inject;
import java.time.Duration;
import org.eclipse.microprofile.health.HealthCheck;
import org.eclipse.microprofile.health.HealthCheckResponse;
import org.eclipse.microprofile.health.Liveness;

/**
 * Down only for what a new start of the broker would mend: its event loop hangs. A lost GPU, workers that do not start
 * or a database that is away are still so after a start, which would only end the sessions that go on.
 */
@Liveness
public class BrokerLiveness implements HealthCheck {
    /** Sessions end with the broker: a machine that is merely slow must not count as hanging. */
    static final Duration LOOP_LIMIT = Duration.ofSeconds(30);

    @Inject
    RunningBroker running;

    @Override
    public HealthCheckResponse call() {
        Broker broker = running.find().orElse(null);
        if (broker == null) {
            return HealthCheckResponse.named("event-loop").up().withData("reason", "the broker is starting").build();
        }
        Duration silence = broker.loopSilence();
        return HealthCheckResponse.named("event-loop").status(silence.compareTo(LOOP_LIMIT) < 0)
            .withData("silentMs", silence.toMillis()).build();
    }
}
