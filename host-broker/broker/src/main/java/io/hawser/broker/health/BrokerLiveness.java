package io.hawser.broker.health;

import io.hawser.broker.BrokerLifecycle;
import jakarta.inject.Inject;
import org.eclipse.microprofile.health.HealthCheck;
import org.eclipse.microprofile.health.HealthCheckResponse;
import org.eclipse.microprofile.health.Liveness;

/** Up while the event loop that has all connections answers. */
@Liveness
public class BrokerLiveness implements HealthCheck {
    @Inject
    BrokerLifecycle lifecycle;

    @Override
    public HealthCheckResponse call() {
        boolean answers = lifecycle.broker() != null && lifecycle.broker().answers();
        return HealthCheckResponse.named("event-loop").status(answers).build();
    }
}
