package io.hawser.broker.health;

import io.hawser.broker.Broker;
import io.hawser.broker.RunningBroker;
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
    RunningBroker running;

    private DatabaseProbe probe;

    @Override
    public HealthCheckResponse call() {
        Broker broker = running.find().orElse(null);
        HealthCheckResponseBuilder response = HealthCheckResponse.named("sessions");
        if (broker == null) {
            return response.down().withData("reason", "the broker is starting").build();
        }
        Readiness readiness = check(broker);
        response.status(readiness.isReady()).withData("gpus", readiness.pool().devices().size())
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

    /** Whether the broker can serve a new guest, and the reasons when it cannot. Not on the event loop. */
    public Readiness check(Broker broker) {
        return Readiness.of(broker, probe(broker));
    }

    /** One probe for the broker's life: a hanging database then blocks only one thread. */
    private synchronized DatabaseProbe probe(Broker broker) {
        if (probe == null) {
            probe = new DatabaseProbe(broker.database());
        }
        return probe;
    }
}
