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

/** The operations of openapi.yml for those who watch, by their operationId. */
@Path("/api/v1")
@Produces(MediaType.APPLICATION_JSON)
public interface StreamApi {
    /** A picture, then what changes, and events; 503 when too many watch. */
    @GET
    @Path("/stream")
    @Needs(Role.VIEWER)
    @Produces(MediaType.SERVER_SENT_EVENTS)
    Multi<OutboundSseEvent> stream();

    /** The events of late, newest first; 400 when {@code limit} is none. */
    @GET
    @Path("/events")
    @Needs(Role.VIEWER)
    List<Event> listEvents(@QueryParam("limit") String limit);

    /** What the broker, a GPU or a vGPU was; 400 for what is no time, 404 for what is no such thing. */
    @GET
    @Path("/history")
    @Needs(Role.VIEWER)
    HistoryInfo getHistory(@QueryParam("gpu") String gpu, @QueryParam("vgpu") String vgpu,
        @QueryParam("seconds") String seconds);
}
