package io.hawser.broker.health;

import io.hawser.broker.Broker;
import io.hawser.broker.BrokerLifecycle;
import io.hawser.broker.pool.PoolState;
import jakarta.inject.Inject;
import org.eclipse.microprofile.health.HealthCheck;
import org.eclipse.microprofile.health.HealthCheckResponse;
import org.eclipse.microprofile.health.HealthCheckResponseBuilder;
import org.eclipse.microprofile.health.Readiness;

/** Up while a guest that comes now can be expected to get a session: the GPU is known and workers start. */
@Readiness
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
        PoolState pool = broker.pool();
        String reason = reason(pool);
        response.status(reason.isEmpty()).withData("gpus", pool.devices().size())
            .withData("workersReady", pool.ready()).withData("workersStarting", pool.starting())
            .withData("workerFailures", pool.failures());
        if (!reason.isEmpty()) {
            response.withData("reason", reason);
        }
        if (!broker.tokenProblem().isEmpty()) {
            response.withData("tokens", broker.tokenProblem());
        }
        return response.build();
    }

    private static String reason(PoolState pool) {
        if (!pool.usable()) {
            return "no worker can be started: " + pool.lastFailure();
        }
        return pool.devices().isEmpty() ? "no worker has told yet which GPU there is" : "";
    }
}
