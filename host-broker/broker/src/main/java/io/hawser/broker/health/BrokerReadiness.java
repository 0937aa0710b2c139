package io.hawser.broker.health;

import jakarta.inject.Inject;
import jakarta.inject.Singleton;
import org.eclipse.microprofile.health.HealthCheck;
import org.eclipse.microprofile.health.HealthCheckResponse;
import org.eclipse.microprofile.health.HealthCheckResponseBuilder;

/** Up while a new guest can expect a session; otherwise the response contains the reason. */
@org.eclipse.microprofile.health.Readiness
@Singleton
public class BrokerReadiness implements HealthCheck {
    @Inject
    ReadinessCheck check;

    @Override
    public HealthCheckResponse call() {
        Readiness readiness = check.check();
        HealthCheckResponseBuilder response = HealthCheckResponse.named("sessions").status(readiness.isReady())
            .withData("gpus", readiness.pool().devices().size())
            .withData("workersReady", readiness.pool().ready())
            .withData("workersStarting", readiness.pool().starting())
            .withData("workerFailures", readiness.pool().failures());
        if (!readiness.isReady()) {
            response.withData("reason", String.join("; ", readiness.reasons()));
        }
        if (!readiness.notes().isEmpty()) {
            response.withData("notes", String.join("; ", readiness.notes()));
        }
        return response.build();
    }
}
