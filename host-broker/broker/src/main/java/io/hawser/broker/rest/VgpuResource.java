package io.hawser.broker.rest;

import io.hawser.broker.admin.PoolView;
import io.hawser.broker.admin.TokenService;
import io.hawser.broker.admin.VgpuService;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.session.VgpuUsage;
import io.hawser.broker.vgpu.VgpuTable;
import io.hawser.broker.view.PoolInventory;
import io.hawser.broker.view.TokenInfo;
import io.hawser.broker.view.VgpuInfo;
import io.hawser.broker.view.VgpuInventory;
import io.hawser.broker.view.VgpuStatistics;
import io.smallrye.common.annotation.NonBlocking;
import jakarta.inject.Inject;
import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.Response;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jboss.resteasy.reactive.RestResponse;

/** Answers reads from published state; changes wait for the event loop without blocking a thread. */
@NonBlocking
public class VgpuResource implements VgpuApi {
    @Inject
    VgpuTable vgpus;
    @Inject
    VgpuInventory inventory;
    @Inject
    PoolInventory pool;
    @Inject
    PoolView members;
    @Inject
    SessionRegistry sessions;
    @Inject
    VgpuService service;
    @Inject
    TokenService tokens;

    @Override
    public List<VgpuInfo> listVgpus(List<String> labels, String broker) {
        try {
            return pool.vgpus(labels, broker);
        } catch (VgpuException e) {
            throw problem(e);
        }
    }

    @Override
    public CompletionStage<RestResponse<VgpuInfo>> createVgpu(boolean idempotent, VgpuRequest request) {
        if (request == null) {
            throw problem(new VgpuException(VgpuException.Kind.INVALID, "a vGPU must have a name"));
        }
        try {
            return withStatus(service.create(request.name(), request.fields().draft(), request.broker(), idempotent)
                .thenApply(created -> RestResponse.status(created.isNew() ? RestResponse.Status.CREATED
                    : RestResponse.Status.OK, inventory.info(created.view()))));
        } catch (VgpuException e) {
            throw problem(e);
        }
    }

    @Override
    public VgpuInfo getVgpu(String name) {
        return pool.vgpu(name)
            .orElseThrow(() -> problem(VgpuException.missing(name)));
    }

    @Override
    public CompletionStage<VgpuStatistics> getVgpuStatistics(String name) {
        Optional<CompletableFuture<VgpuUsage>> elsewhere = members.usage(name);
        return withStatus(elsewhere.orElseGet(() -> vgpus.find(name).isPresent()
            ? CompletableFuture.completedFuture(sessions.usage(name))
            : CompletableFuture.failedFuture(VgpuException.missing(name))).thenApply(VgpuStatistics::of));
    }

    @Override
    public CompletionStage<VgpuInfo> changeVgpu(String name, VgpuChange change) {
        try {
            VgpuChange wished = Objects.requireNonNullElse(change, VgpuChange.NOTHING);
            return withStatus(service.change(name, wished.draft(), wished.expectedOwner())
                .thenApply(inventory::info));
        } catch (VgpuException e) {
            throw problem(e);
        }
    }

    @Override
    public CompletionStage<Void> deleteVgpu(String name, boolean force, String expectedOwner) {
        return withStatus(service.delete(name, force, expectedOwner));
    }

    @Override
    public List<TokenInfo> listTokens(String name) {
        try {
            return tokens.list(name).stream().map(TokenInfo::of).toList();
        } catch (VgpuException e) {
            throw problem(e);
        }
    }

    @Override
    public List<TokenInfo> listAllTokens(Boolean acceptsOldProof) {
        return tokens.all().stream()
            .filter(token -> acceptsOldProof == null || token.acceptsOldProof() == acceptsOldProof)
            .map(TokenInfo::of).toList();
    }

    @Override
    public CompletionStage<NewToken> createToken(String name, boolean replace, TokenRequest request) {
        return withStatus(tokens.create(name, request == null ? null : request.note(),
            request == null ? null : request.expires(), replace).thenApply(NewToken::of));
    }

    @Override
    public CompletionStage<Void> revokeToken(String name, String keyId) {
        return withStatus(tokens.revoke(name, keyId));
    }

    /** Maps a failure of vGPUs to its HTTP status. */
    static <T> CompletionStage<T> withStatus(CompletionStage<T> stage) {
        return stage.exceptionallyCompose(failure -> {
            Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
            return CompletableFuture.failedFuture(cause instanceof VgpuException known ? problem(known) : cause);
        });
    }

    private static WebApplicationException problem(VgpuException known) {
        return new WebApplicationException(known.getMessage(), switch (known.kind()) {
            case INVALID -> Response.Status.BAD_REQUEST;
            case CONFLICT -> Response.Status.CONFLICT;
            case CHANGED -> Response.Status.PRECONDITION_FAILED;
            case MISSING -> Response.Status.NOT_FOUND;
            case UNAVAILABLE -> Response.Status.SERVICE_UNAVAILABLE;
        });
    }
}
