package io.hawser.broker.rest;

import io.hawser.broker.access.Needs;
import io.hawser.broker.access.Role;
import io.hawser.broker.audit.AuditEntry;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.util.List;

/** The operation of openapi.yml about the audit log. */
@Path("/api/v1")
@Produces(MediaType.APPLICATION_JSON)
public interface AuditApi {
    /** Lists entries, the newest first; 400 for a limit outside 1 to 1000. */
    @GET
    @Path("/audit")
    @Needs(Role.ADMIN)
    List<AuditEntry> listAudit(@QueryParam("limit") Integer limit, @QueryParam("before") Long before);
}
