package io.hawser.broker.health;

import io.hawser.broker.Broker;
import io.hawser.broker.RunningBroker;
import jakarta.inject.Inject;
import jakarta.inject.Singleton;
import org.eclipse.microprofile.health.HealthCheck;
import org.eclipse.microprofile.health.HealthCheckResponse;
import org.eclipse.microprofile.health.HealthCheckResponseBuilder;

/** Up while a guest that comes now can be expected to get a session; says why when not. */
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
        Readiness readiness = now(broker);
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

    /** Whether a guest that comes now can be served, and the reasons when it cannot. Not on the event loop. */
    public Readiness now(Broker broker) {
        return Readiness.of(broker, probe(broker));
    }

    /** One probe for the broker's life: a database that hangs then holds one thread only. */
    private synchronized DatabaseProbe probe(Broker broker) {
        if (probe == null) {
            probe = new DatabaseProbe(broker.database());
        }
        return probe;
    }
}
