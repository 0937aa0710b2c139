package io.hawser.broker.rest;

import io.hawser.broker.LoopPulse;
import io.hawser.broker.admin.PoolView;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.door.FrontDoor;
import io.hawser.broker.jail.Confinement;
import io.hawser.broker.model.PoolState;
import io.hawser.broker.model.Printable;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.region.RegionException;
import io.hawser.broker.region.RegionSettings;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.store.Database;
import io.hawser.broker.turns.TurnMode;
import io.hawser.broker.view.BrokerInfo;
import io.hawser.broker.view.GpuInfo;
import io.hawser.broker.view.PeerInfo;
import io.hawser.broker.view.PoolInventory;
import io.hawser.broker.view.RegionInfo;
import io.hawser.broker.view.SessionInfo;
import io.hawser.cuda.generated.Description;
import io.hawser.shm.wire.RecordLayout;
import io.smallrye.common.annotation.NonBlocking;
import jakarta.annotation.PostConstruct;
import jakarta.inject.Inject;
import jakarta.ws.rs.BadRequestException;
import jakarta.ws.rs.NotFoundException;
import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.Response;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/** Answers from state that the broker publishes; no answer waits for the event loop. */
@NonBlocking
public class BrokerResource implements BrokerApi {
    private static final RegionRequest NOTHING = new RegionRequest(null, null, null, null, null, null, null, null);

    @Inject
    BrokerConfig config;
    @Inject
    LoopPulse pulse;
    @Inject
    FrontDoor door;
    @Inject
    HttpEndpoint http;
    @Inject
    WorkerPools pools;
    @Inject
    Confinement jail;
    @Inject
    TurnMode turnMode;
    @Inject
    Database database;
    @Inject
    PoolInventory inventory;
    @Inject
    PoolView members;
    @Inject
    SessionRegistry sessions;
    @Inject
    Regions regions;
    @ConfigProperty(name = "quarkus.application.version")
    String version;

    private List<BrokerInfo.Library> libraries;

    /** As the list of the workers' libraries, it is made once. */
    @PostConstruct
    void findLibraries() {
        libraries = jail.libraries().libraries().stream()
            .map(found -> new BrokerInfo.Library(found.soname(), found.path().toString(), found.version())).toList();
    }

    @Override
    public BrokerInfo getBroker() {
        PoolState pool = pools.state();
        return new BrokerInfo(version, RecordLayout.PROTOCOL_VERSION, HexFormat.of().toHexDigits(Description.HASH),
            pulse.started(), door.endpoint(), door.tlsEndpoint(), http.url(), pool.backend(), config.sessions().max(),
            jail.describe(), config.placement(), config.overcommit(), turnMode.label(), database.kind().label(),
            http.url().startsWith("https:"), new BrokerInfo.Pool(pool.size(), pool.grown(), pool.ready(),
                pool.starting(), pool.assigned(), pool.failures(), pool.lastFailure(),
                pool.waiting().values().stream().mapToInt(Integer::intValue).sum()),
            libraries, members.name(), members.problem());
    }

    @Override
    public List<PeerInfo> listBrokers() {
        return inventory.brokers();
    }

    @Override
    public CompletionStage<Void> removeBroker(String name) {
        return VgpuResource.withStatus(members.remove(name));
    }

    @Override
    public List<GpuInfo> listGpus(String broker) {
        return inventory.of(broker).gpus();
    }

    @Override
    public List<SessionInfo> listSessions(String broker) {
        return inventory.of(broker).sessions();
    }

    @Override
    public SessionInfo getSession(long id) {
        return inventory.session(id).orElseThrow(() -> missing(id));
    }

    @Override
    public CompletionStage<Void> endSession(long id) {
        Optional<CompletableFuture<Void>> elsewhere = members.endSession(id,
            inventory.session(id).map(SessionInfo::broker));
        return elsewhere.isPresent() ? VgpuResource.withStatus(elsewhere.get())
            : sessions.end(id, "the administrator ended the session").thenAccept(existed -> {
                if (!existed) {
                    throw missing(id);
                }
            });
    }

    @Override
    public List<RegionInfo> listRegions(String broker) {
        return inventory.of(broker).regions();
    }

    @Override
    public CompletionStage<RegionInfo> createRegion(RegionRequest request) {
        RegionSettings settings;
        try {
            settings = Objects.requireNonNullElse(request, NOTHING).settings();
        } catch (IllegalArgumentException e) {
            throw new BadRequestException(e.getMessage());
        }
        return withStatus(regions.create(settings)
            .thenApply(region -> RegionInfo.of(region, members.name())));
    }

    @Override
    public RegionInfo getRegion(String name) {
        return regions.find(name).map(region -> RegionInfo.of(region, members.name()))
            .orElseThrow(() -> new NotFoundException("there is no such region: region=" + Printable.text(name, 64)));
    }

    @Override
    public CompletionStage<Void> deleteRegion(String name) {
        return withStatus(regions.remove(name, "the administrator removed the region"));
    }

    /** Maps a failure of regions to its HTTP status. */
    private static <T> CompletionStage<T> withStatus(CompletionStage<T> stage) {
        return stage.exceptionallyCompose(failure -> {
            Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
            return CompletableFuture.failedFuture(cause instanceof RegionException known
                ? new WebApplicationException(known.getMessage(), switch (known.kind()) {
                    case INVALID -> Response.Status.BAD_REQUEST;
                    case CONFLICT -> Response.Status.CONFLICT;
                    case MISSING -> Response.Status.NOT_FOUND;
                }) : cause);
        });
    }

    private static NotFoundException missing(long id) {
        return new NotFoundException("there is no such session: id=" + id);
    }
}
