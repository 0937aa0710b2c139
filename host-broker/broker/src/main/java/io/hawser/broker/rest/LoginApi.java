package io.hawser.broker.rest;

import io.hawser.broker.access.Anyone;
import io.hawser.broker.access.Needs;
import io.hawser.broker.access.Role;
import jakarta.ws.rs.Consumes;
import jakarta.ws.rs.DELETE;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.MediaType;
import java.util.concurrent.CompletionStage;
import org.jboss.resteasy.reactive.RestResponse;

/** The operations of openapi.yml about logins. */
@Path("/api/v1")
@Produces(MediaType.APPLICATION_JSON)
public interface LoginApi {
    /** The caller's identity. */
    @GET
    @Path("/me")
    @Needs(Role.VIEWER)
    Me getMe();

    /** Creates a login and sets its cookie; 401 when name, password or token is wrong, 429 after too many failures. */
    @POST
    @Path("/login")
    @Consumes(MediaType.APPLICATION_JSON)
    @Anyone
    CompletionStage<RestResponse<Me>> login(LoginRequest request);

    /** Ends the login of the request's cookie; does nothing without one. */
    @DELETE
    @Path("/login")
    @Anyone
    RestResponse<Void> logout();
}
