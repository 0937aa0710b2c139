package io.hawser.broker;

import jakarta.enterprise.context.ApplicationScoped;
import java.util.Optional;

/**
 * The application's broker, for the beans that serve it. The application sets the broker before its HTTP server opens,
 * so requests always find one. Thread-safe.
 */
@ApplicationScoped
public class RunningBroker {
    private volatile Broker broker;
    private volatile String httpEndpoint = "";

    /**
     * The broker.
     *
     * @throws IllegalStateException before the application has started it.
     */
    public Broker broker() {
        return find().orElseThrow(() -> new IllegalStateException("the broker has not started"));
    }

    /** The broker; empty before the application has started it. */
    public Optional<Broker> find() {
        return Optional.ofNullable(broker);
    }

    /** URL of the REST interface, {@code http://host:port}; empty before the HTTP server listens. */
    public String httpEndpoint() {
        return httpEndpoint;
    }

    /** Sets the broker. The application calls it once, at its start. */
    public void start(Broker started) {
        broker = started;
    }

    /** Sets the URL of the REST interface. The application calls it when the HTTP server listens. */
    public void listen(String endpoint) {
        httpEndpoint = endpoint;
    }
}
