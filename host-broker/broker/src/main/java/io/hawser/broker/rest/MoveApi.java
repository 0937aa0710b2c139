package io.hawser.broker.rest;

import io.hawser.broker.access.Needs;
import io.hawser.broker.access.Role;
import io.hawser.broker.view.DrainInfo;
import io.hawser.broker.view.MoveInfo;
import io.hawser.broker.view.RebalanceInfo;
import jakarta.ws.rs.Consumes;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.MediaType;
import java.util.concurrent.CompletionStage;

/** The operations of openapi.yml that move vGPUs, by their operationId; a test compares the two. */
@Path("/api/v1")
@Produces(MediaType.APPLICATION_JSON)
public interface MoveApi {
    /**
     * Moves the vGPU of a session with all its sessions; 404 when the session or the GPU does not exist, 409 when a
     * rule forbids the move or it has failed. The sessions stay then.
     */
    @POST
    @Path("/sessions/{id}/move")
    @Needs(Role.OPERATOR)
    @Consumes(MediaType.APPLICATION_JSON)
    CompletionStage<MoveInfo> moveSession(@PathParam("id") long id, MoveRequest request);

    /** Moves a vGPU with all its sessions; as {@link #moveSession}. */
    @POST
    @Path("/vgpus/{name}/move")
    @Needs(Role.OPERATOR)
    @Consumes(MediaType.APPLICATION_JSON)
    CompletionStage<MoveInfo> moveVgpu(@PathParam("name") String name, MoveRequest request);

    /**
     * Places no further vGPU on a GPU, and moves its vGPUs to others; completes when each has moved or stays. 404 when
     * the GPU does not exist.
     */
    @POST
    @Path("/gpus/{gpu}/drain")
    @Needs(Role.OPERATOR)
    CompletionStage<DrainInfo> drainGpu(@PathParam("gpu") String gpu);

    /** Allows vGPUs on a GPU again; 404 when the GPU does not exist. */
    @POST
    @Path("/gpus/{gpu}/undrain")
    @Needs(Role.OPERATOR)
    CompletionStage<DrainInfo> undrainGpu(@PathParam("gpu") String gpu);

    /**
     * Places no further vGPU on a broker, and moves its vGPUs to others of the pool; as {@link #drainGpu}.
     */
    @POST
    @Path("/brokers/{name}/drain")
    @Needs(Role.OPERATOR)
    CompletionStage<DrainInfo> drainBroker(@PathParam("name") String name);

    /** Allows vGPUs on a broker again. */
    @POST
    @Path("/brokers/{name}/undrain")
    @Needs(Role.OPERATOR)
    CompletionStage<DrainInfo> undrainBroker(@PathParam("name") String name);

    /**
     * Moves vGPUs to GPUs that the policy of the placement prefers, one after the other; completes when each has moved
     * or stays. 400 for a limit outside 1 to 1000, 409 while this broker rebalances already.
     */
    @POST
    @Path("/rebalance")
    @Needs(Role.OPERATOR)
    @Consumes(MediaType.APPLICATION_JSON)
    CompletionStage<RebalanceInfo> rebalance(RebalanceRequest request);
}
