package io.hawser.broker.stream;

import io.hawser.broker.access.Needs;
import io.hawser.broker.access.Role;
import io.hawser.broker.events.Event;
import io.hawser.broker.history.HistoryInfo;
import io.smallrye.mutiny.Multi;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.sse.OutboundSseEvent;
import java.util.List;

/** The stream's operations of openapi.yml, by their operationId. */
@Path("/api/v1")
@Produces(MediaType.APPLICATION_JSON)
public interface StreamApi {
    /** Streams a picture, then changes and events; 503 when too many clients watch. */
    @GET
    @Path("/stream")
    @Needs(Role.VIEWER)
    @Produces(MediaType.SERVER_SENT_EVENTS)
    Multi<OutboundSseEvent> stream();

    /** The latest events, newest first; 400 for an invalid {@code limit}. */
    @GET
    @Path("/events")
    @Needs(Role.VIEWER)
    List<Event> listEvents(@QueryParam("limit") String limit);

    /** History of the broker, a GPU or a vGPU; 400 for an invalid time, 404 for an unknown GPU or vGPU. */
    @GET
    @Path("/history")
    @Needs(Role.VIEWER)
    HistoryInfo getHistory(@QueryParam("gpu") String gpu, @QueryParam("vgpu") String vgpu,
        @QueryParam("seconds") String seconds);
}
