package io.hawser.broker.rest;

import io.hawser.broker.access.Needs;
import io.hawser.broker.access.Role;
import io.hawser.broker.view.TokenInfo;
import io.hawser.broker.view.VgpuInfo;
import io.hawser.broker.view.VgpuStatistics;
import jakarta.ws.rs.Consumes;
import jakarta.ws.rs.DELETE;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.PATCH;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jboss.resteasy.reactive.ResponseStatus;
import org.jboss.resteasy.reactive.RestResponse;

/** The operations of openapi.yml on vGPUs and their tokens, by their operationId; a test compares the two. */
@Path("/api/v1")
@Produces(MediaType.APPLICATION_JSON)
public interface VgpuApi {
    /** The vGPUs, by name; with a query those of one broker that have all its labels; 400 for text that is no label. */
    @GET
    @Path("/vgpus")
    @Needs(Role.VIEWER)
    List<VgpuInfo> listVgpus(@QueryParam("label") List<String> labels, @QueryParam("broker") String broker);

    /**
     * Creates and places a vGPU; 400 when it is invalid, 409 for a conflict, 503 when the broker cannot do it now. With
     * {@code idempotent}, 200 for an equal vGPU that exists.
     */
    @POST
    @Path("/vgpus")
    @Needs(Role.OPERATOR)
    @Consumes(MediaType.APPLICATION_JSON)
    CompletionStage<RestResponse<VgpuInfo>> createVgpu(
        @QueryParam("idempotent") @DefaultValue("false") boolean idempotent, VgpuRequest request);

    /** A vGPU; 404 when it does not exist. */
    @GET
    @Path("/vgpus/{name}")
    @Needs(Role.VIEWER)
    VgpuInfo getVgpu(@PathParam("name") String name);

    /** The totals of a vGPU's sessions; 404 when it does not exist, 503 when its broker does not answer. */
    @GET
    @Path("/vgpus/{name}/statistics")
    @Needs(Role.VIEWER)
    CompletionStage<VgpuStatistics> getVgpuStatistics(@PathParam("name") String name);

    /** Changes the given fields; 412 when the owner is not the expected one. */
    @PATCH
    @Path("/vgpus/{name}")
    @Needs(Role.OPERATOR)
    @Consumes(MediaType.APPLICATION_JSON)
    CompletionStage<VgpuInfo> changeVgpu(@PathParam("name") String name, VgpuChange change);

    /**
     * Deletes a vGPU; 409 while it is in use, unless {@code force} ends its sessions and regions; 412 when the owner is
     * not the expected one.
     */
    @DELETE
    @Path("/vgpus/{name}")
    @Needs(Role.OPERATOR)
    CompletionStage<Void> deleteVgpu(@PathParam("name") String name,
        @QueryParam("force") @DefaultValue("false") boolean force,
        @QueryParam("expectedOwner") String expectedOwner);

    /** The tokens of a vGPU, the oldest first. */
    @GET
    @Path("/vgpus/{name}/tokens")
    @Needs(Role.OPERATOR)
    List<TokenInfo> listTokens(@PathParam("name") String name);

    /**
     * The tokens of all vGPUs; on request only tokens that accept, or do not accept, the proof of old guest packages.
     */
    @GET
    @Path("/tokens")
    @Needs(Role.OPERATOR)
    List<TokenInfo> listAllTokens(@QueryParam("acceptsOldProof") Boolean acceptsOldProof);

    /**
     * Creates a token; only this answer contains its secret. With {@code replace}, the token replaces those of the same
     * note.
     */
    @POST
    @Path("/vgpus/{name}/tokens")
    @Needs(Role.OPERATOR)
    @ResponseStatus(201)
    @Consumes(MediaType.APPLICATION_JSON)
    CompletionStage<NewToken> createToken(@PathParam("name") String name,
        @QueryParam("replace") @DefaultValue("false") boolean replace, TokenRequest request);

    /** Revokes a token and ends its sessions. */
    @DELETE
    @Path("/vgpus/{name}/tokens/{keyId}")
    @Needs(Role.OPERATOR)
    CompletionStage<Void> revokeToken(@PathParam("name") String name, @PathParam("keyId") String keyId);
}
