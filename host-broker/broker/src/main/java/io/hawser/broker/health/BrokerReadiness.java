package io.hawser.broker.health;

import io.hawser.broker.Broker;
import io.hawser.broker.BrokerLifecycle;
import jakarta.inject.Inject;
import org.eclipse.microprofile.health.HealthCheck;
import org.eclipse.microprofile.health.HealthCheckResponse;
import org.eclipse.microprofile.health.HealthCheckResponseBuilder;

/** Up while a guest that comes now can be expected to get a session; says why when not. */
@org.eclipse.microprofile.health.Readiness
public class BrokerReadiness implements HealthCheck {
    @Inject
    BrokerLifecycle lifecycle;

    @Override
    public HealthCheckResponse call() {
        Broker broker = lifecycle.broker();
        HealthCheckResponseBuilder response = HealthCheckResponse.named("sessions");
        if (broker == null) {
            return response.down().withData("reason", "the broker is starting").build();
        }
        Readiness readiness = lifecycle.readiness();
        response.status(readiness.ready()).withData("gpus", readiness.pool().devices().size())
            .withData("workersReady", readiness.pool().ready())
            .withData("workersStarting", readiness.pool().starting())
            .withData("workerFailures", readiness.pool().failures());
        if (!readiness.ready()) {
            response.withData("reason", String.join("; ", readiness.reasons()));
        }
        if (!readiness.notes().isEmpty()) {
            response.withData("notes", String.join("; ", readiness.notes()));
        }
        return response.build();
    }
}
