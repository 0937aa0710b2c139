package io.hawser.broker.rest;

import jakarta.ws.rs.core.Response;

/** An error in the format of RFC 9457. */
public record Problem(String title, int status, String detail) {
    /** Media type of a problem. */
    public static final String MEDIA_TYPE = "application/problem+json";

    /** A response with a problem as its body. */
    public static Response response(Response.StatusType status, String detail) {
        return Response.status(status.getStatusCode()).type(MEDIA_TYPE)
            .entity(new Problem(status.getReasonPhrase(), status.getStatusCode(), detail)).build();
    }
}
