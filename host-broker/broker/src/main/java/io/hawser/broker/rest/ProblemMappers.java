package io.hawser.broker.rest;

import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.Response;
import org.jboss.logging.Logger;
import org.jboss.resteasy.reactive.server.ServerExceptionMapper;

/** Maps failures to problems; internal details go to the log only. */
public class ProblemMappers {
    private static final Logger LOG = Logger.getLogger(ProblemMappers.class);

    /** A failure with a status. */
    @ServerExceptionMapper
    public Response map(WebApplicationException failure) {
        Response.StatusType status = failure.getResponse().getStatusInfo();
        return Problem.response(status, failure.getMessage() == null ? status.getReasonPhrase() : failure.getMessage());
    }

    /** Maps a fault of the broker. */
    @ServerExceptionMapper
    public Response map(RuntimeException failure) {
        LOG.error("a request failed", failure);
        return Problem.response(Response.Status.INTERNAL_SERVER_ERROR, "the broker failed; its log says why");
    }
}
