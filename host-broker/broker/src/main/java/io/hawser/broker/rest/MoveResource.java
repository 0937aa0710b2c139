package io.hawser.broker.rest;

import io.hawser.broker.admin.MoveService;
import io.hawser.broker.view.DrainInfo;
import io.hawser.broker.view.MoveInfo;
import io.smallrye.common.annotation.NonBlocking;
import jakarta.inject.Inject;
import java.util.concurrent.CompletionStage;

/** Moves wait for the workers without blocking a thread. */
@NonBlocking
public class MoveResource implements MoveApi {
    @Inject
    MoveService service;

    @Override
    public CompletionStage<MoveInfo> moveSession(long id, MoveRequest request) {
        return VgpuResource.withStatus(service.moveSession(id, request == null ? null : request.gpu())
            .thenApply(MoveInfo::of));
    }

    @Override
    public CompletionStage<MoveInfo> moveVgpu(String name, MoveRequest request) {
        return VgpuResource.withStatus(service.move(name, request == null ? null : request.gpu())
            .thenApply(MoveInfo::of));
    }

    @Override
    public CompletionStage<DrainInfo> drainGpu(String gpu) {
        return VgpuResource.withStatus(service.drain(gpu).thenApply(DrainInfo::of));
    }

    @Override
    public CompletionStage<DrainInfo> undrainGpu(String gpu) {
        return VgpuResource.withStatus(service.undrain(gpu).thenApply(DrainInfo::undrained));
    }
}
