package io.hawser.broker.rest;

import io.hawser.broker.LoopPulse;
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
import io.hawser.broker.view.GpuInventory;
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
    GpuInventory gpus;
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
            libraries);
    }

    @Override
    public List<GpuInfo> listGpus() {
        return gpus.list();
    }

    @Override
    public List<SessionInfo> listSessions() {
        return sessions.list().stream().map(SessionInfo::of).toList();
    }

    @Override
    public SessionInfo getSession(long id) {
        return sessions.find(id).map(SessionInfo::of).orElseThrow(() -> missing(id));
    }

    @Override
    public CompletionStage<Void> endSession(long id) {
        return sessions.end(id, "the administrator ended the session").thenAccept(existed -> {
            if (!existed) {
                throw missing(id);
            }
        });
    }

    @Override
    public List<RegionInfo> listRegions() {
        return regions.list().stream().map(RegionInfo::of).toList();
    }

    @Override
    public CompletionStage<RegionInfo> createRegion(RegionRequest request) {
        RegionSettings settings;
        try {
            settings = Objects.requireNonNullElse(request, NOTHING).settings();
        } catch (IllegalArgumentException e) {
            throw new BadRequestException(e.getMessage());
        }
        return withStatus(regions.create(settings).thenApply(RegionInfo::of));
    }

    @Override
    public RegionInfo getRegion(String name) {
        return regions.find(name).map(RegionInfo::of)
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
