package io.hawser.broker.rest;

import io.hawser.broker.access.Needs;
import io.hawser.broker.access.Role;
import io.hawser.broker.view.BrokerInfo;
import io.hawser.broker.view.GpuInfo;
import io.hawser.broker.view.PeerInfo;
import io.hawser.broker.view.RegionInfo;
import io.hawser.broker.view.SessionInfo;
import jakarta.ws.rs.Consumes;
import jakarta.ws.rs.DELETE;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jboss.resteasy.reactive.ResponseStatus;

/** The operations of openapi.yml, by their operationId; a test compares the two. */
@Path("/api/v1")
@Produces(MediaType.APPLICATION_JSON)
public interface BrokerApi {
    /** The broker itself. */
    @GET
    @Path("/broker")
    @Needs(Role.VIEWER)
    BrokerInfo getBroker();

    /** The brokers of the pool, by number; empty when this one is alone. */
    @GET
    @Path("/brokers")
    @Needs(Role.VIEWER)
    List<PeerInfo> listBrokers();

    /** Removes a silent broker from the pool; 404 when it does not exist, 409 when it answers. */
    @DELETE
    @Path("/brokers/{name}")
    @Needs(Role.ADMIN)
    CompletionStage<Void> removeBroker(@PathParam("name") String name);

    /** The GPUs that workers see. */
    @GET
    @Path("/gpus")
    @Needs(Role.VIEWER)
    List<GpuInfo> listGpus(@QueryParam("broker") String broker);

    /** The sessions, oldest first. */
    @GET
    @Path("/sessions")
    @Needs(Role.VIEWER)
    List<SessionInfo> listSessions(@QueryParam("broker") String broker);

    /** A session; 404 when it does not exist. */
    @GET
    @Path("/sessions/{id}")
    @Needs(Role.VIEWER)
    SessionInfo getSession(@PathParam("id") long id);

    /** Ends a session; completes when the broker has released everything; 404 when it does not exist. */
    @DELETE
    @Path("/sessions/{id}")
    @Needs(Role.OPERATOR)
    CompletionStage<Void> endSession(@PathParam("id") long id);

    /** The regions, by name. */
    @GET
    @Path("/regions")
    @Needs(Role.VIEWER)
    List<RegionInfo> listRegions(@QueryParam("broker") String broker);

    /** Opens a region; 400 for invalid settings, 409 for a conflict. */
    @POST
    @Path("/regions")
    @Needs(Role.OPERATOR)
    @ResponseStatus(201)
    @Consumes(MediaType.APPLICATION_JSON)
    CompletionStage<RegionInfo> createRegion(RegionRequest request);

    /** A region; 404 when it does not exist. */
    @GET
    @Path("/regions/{name}")
    @Needs(Role.VIEWER)
    RegionInfo getRegion(@PathParam("name") String name);

    /**
     * Ends a region and its sessions; completes when the broker has released everything; 404 when it does not exist.
     */
    @DELETE
    @Path("/regions/{name}")
    @Needs(Role.OPERATOR)
    CompletionStage<Void> deleteRegion(@PathParam("name") String name);
}
