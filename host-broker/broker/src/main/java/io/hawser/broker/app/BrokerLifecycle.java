package io.hawser.broker.app;

import io.hawser.broker.Broker;
import io.hawser.broker.access.Exposure;
import io.hawser.broker.access.UsersFile;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.door.FrontDoor;
import io.hawser.broker.events.EventFeed;
import io.hawser.broker.health.ReadinessCheck;
import io.hawser.broker.machine.CLibrary;
import io.hawser.broker.machine.Finding;
import io.hawser.broker.machine.MachineCheck;
import io.hawser.broker.metrics.BrokerMetrics;
import io.hawser.broker.metrics.Sources;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.StartException;
import io.hawser.broker.rest.Gate;
import io.hawser.broker.rest.HttpEndpoint;
import io.hawser.broker.stream.Watch;
import io.hawser.broker.view.GpuInventory;
import io.hawser.broker.view.PoolInventory;
import io.hawser.broker.view.VgpuInventory;
import io.hawser.broker.web.HttpLimits;
import io.hawser.cuda.generated.Description;
import io.quarkus.runtime.ShutdownEvent;
import io.quarkus.runtime.StartupEvent;
import io.quarkus.vertx.http.HttpServer;
import io.quarkus.vertx.http.HttpServerStart;
import io.quarkus.vertx.http.HttpsServerStart;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.event.Observes;
import jakarta.enterprise.event.ObservesAsync;
import jakarta.enterprise.inject.Instance;
import jakarta.inject.Inject;
import java.io.IOException;
import java.nio.file.Path;
import java.util.stream.Collectors;
import org.eclipse.microprofile.config.inject.ConfigProperty;
import org.jboss.logging.Logger;

/** Starts and stops the broker with the application. */
@ApplicationScoped
public class BrokerLifecycle {
    private static final Logger LOG = Logger.getLogger("io.hawser.broker");

    @Inject
    BrokerConfig config;
    @Inject
    BrokerMetrics metrics;
    @Inject
    Gate gate;
    @Inject
    Watch watch;
    @Inject
    RunningBroker running;
    @Inject
    HttpEndpoint httpEndpoint;
    @Inject
    HttpServer httpServer;
    // These beans read parts of the broker, so they come into being after its start.
    @Inject
    Instance<GpuInventory> gpus;
    @Inject
    Instance<VgpuInventory> vgpus;
    @Inject
    Instance<PoolInventory> inventory;
    @Inject
    Instance<ReadinessCheck> readiness;
    @ConfigProperty(name = "quarkus.application.version")
    String version;

    void start(@Observes StartupEvent event) {
        for (Finding finding : MachineCheck.of(Path.of("/"), CLibrary.glibcVersion(), config.gpu().backend())) {
            if (finding.level() == Finding.Level.FOUND) {
                LOG.infof("found %s", finding.text());
            } else {
                LOG.warnf("%s%s", finding.level() == Finding.Level.MISSING ? "MISSING " : "", finding.text());
            }
        }
        HttpLimits.check(config.http());
        Exposure.check(config).forEach(LOG::warn);
        UsersFile users = users();
        EventFeed feed = new EventFeed(watch.events(), metrics);
        Broker broker = Broker.start(config, System.getenv(), feed, Description.HASH);
        running.start(broker);
        Broker.Parts parts = broker.parts();
        gate.open(parts.adminToken(), users, parts.database());
        parts.expiries().setListener(gate::noteExpired);
        ReadinessCheck check = readiness.get();
        metrics.watch(new Sources(parts.sessions(), parts.pools(), parts.regions(), gpus.get(), vgpus.get(),
            inventory.get()::brokers), version,
            () -> check.check().isReady());
        parts.membership().ifPresent(member -> member.pool().setPicture(inventory.get()::ownText));
        watch.start(feed);
    }

    private UsersFile users() {
        try {
            return new UsersFile(config.stateDir().resolve("users"));
        } catch (IOException e) {
            throw new StartException(e.getMessage());
        }
    }

    void listening(@ObservesAsync HttpServerStart event) throws IOException {
        publish("http", event.options().getHost(), BoundPort.await(httpServer::getPort));
    }

    void listening(@ObservesAsync HttpsServerStart event) throws IOException {
        publish("https", event.options().getHost(), BoundPort.await(httpServer::getSecurePort));
    }

    private void publish(String scheme, String host, int port) throws IOException {
        httpEndpoint.setUrl(scheme + "://" + (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + port);
        Broker.Parts parts = running.parts();
        FrontDoor door = parts.door();
        parts.stateDir().writeEndpoints(door.endpoint(), door.tlsEndpoint(), httpEndpoint.url());
        parts.membership().ifPresent(member -> member.publish(door.endpoint(), door.tlsEndpoint(), httpEndpoint.url()));
        parts.pools().known().thenAccept(pool -> logReady(door, pool));
    }

    private void logReady(FrontDoor door, PoolState pool) {
        String names = pool.devices().isEmpty() ? "none" : pool.devices().stream().map(Device::name)
            .collect(Collectors.joining(", "));
        LOG.infof("Hawser broker is ready: guests=%s%s http=%s gpu=%s (%s) pool=%d state=%s", door.endpoint(),
            door.tlsEndpoint().isEmpty() ? "" : " tls://" + door.tlsEndpoint(), httpEndpoint.url(), names,
            pool.backend(), pool.size(), config.stateDir().toAbsolutePath());
    }

    void stop(@Observes ShutdownEvent event) {
        running.find().ifPresent(broker -> {
            watch.stop();
            gate.close();
            broker.stop("the broker is shutting down");
        });
    }
}
