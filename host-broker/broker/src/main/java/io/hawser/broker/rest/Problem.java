package io.hawser.broker.rest;

import jakarta.ws.rs.core.Response;

/** An error as RFC 9457 has it. */
public record Problem(String title, int status, String detail) {
    /** Its media type. */
    public static final String MEDIA_TYPE = "application/problem+json";

    /** A response that carries it. */
    public static Response response(Response.StatusType status, String detail) {
        return Response.status(status.getStatusCode()).type(MEDIA_TYPE)
            .entity(new Problem(status.getReasonPhrase(), status.getStatusCode(), detail)).build();
    }
}
