package io.hawser.broker.rest;

import io.hawser.broker.admin.MoveService;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.view.DrainInfo;
import io.hawser.broker.view.MoveInfo;
import io.hawser.broker.view.PoolInventory;
import io.hawser.broker.view.RebalanceInfo;
import io.smallrye.common.annotation.NonBlocking;
import jakarta.inject.Inject;
import jakarta.ws.rs.BadRequestException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Moves wait for the workers without blocking a thread. */
@NonBlocking
public class MoveResource implements MoveApi {
    private static final int MOST_MOVES = 1000;

    @Inject
    MoveService service;
    @Inject
    PoolInventory inventory;

    @Override
    public CompletionStage<MoveInfo> moveSession(long id, MoveRequest request) {
        return VgpuResource.withStatus(inventory.session(id).map(session -> service.move(session.vgpu(), wish(request)))
            .orElseGet(() -> CompletableFuture.failedFuture(
                new VgpuException(VgpuException.Kind.MISSING, "there is no such session: id=" + id)))
            .thenApply(MoveInfo::of));
    }

    @Override
    public CompletionStage<MoveInfo> moveVgpu(String name, MoveRequest request) {
        return VgpuResource.withStatus(service.move(name, wish(request))
            .thenApply(MoveInfo::of));
    }

    private static MoveService.Wish wish(MoveRequest request) {
        return request == null ? new MoveService.Wish(null, null)
            : new MoveService.Wish(request.gpu(), request.broker());
    }

    @Override
    public CompletionStage<DrainInfo> drainGpu(String gpu) {
        return VgpuResource.withStatus(service.drain(gpu).thenApply(DrainInfo::of));
    }

    @Override
    public CompletionStage<DrainInfo> undrainGpu(String gpu) {
        return VgpuResource.withStatus(service.undrain(gpu).thenApply(uuid -> DrainInfo.undrained(uuid, "")));
    }

    @Override
    public CompletionStage<DrainInfo> drainBroker(String name) {
        return VgpuResource.withStatus(service.drainBroker(name).thenApply(DrainInfo::of));
    }

    @Override
    public CompletionStage<DrainInfo> undrainBroker(String name) {
        return VgpuResource.withStatus(service.undrainBroker(name).thenApply(done -> DrainInfo.undrained("", name)));
    }

    @Override
    public CompletionStage<RebalanceInfo> rebalance(RebalanceRequest request) {
        boolean isTrial = request != null && Boolean.TRUE.equals(request.dryRun());
        int limit = request == null || request.limit() == null ? MOST_MOVES : request.limit();
        if (limit < 1 || limit > MOST_MOVES) {
            throw new BadRequestException("limit must be 1.." + MOST_MOVES + ": limit=" + limit);
        }
        return VgpuResource.withStatus(service.rebalance(isTrial, limit).thenApply(RebalanceInfo::of));
    }
}
