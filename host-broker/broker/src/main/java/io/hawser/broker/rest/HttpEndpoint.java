package io.hawser.broker.rest;

import jakarta.enterprise.context.ApplicationScoped;

/** The URL of the REST interface, {@code http://host:port}; empty before the HTTP server listens. Thread-safe. */
@ApplicationScoped
public class HttpEndpoint {
    private volatile String url = "";

    /** The URL. */
    public String url() {
        return url;
    }

    /** Sets the URL. The application calls it when the HTTP server listens. */
    public void setUrl(String listening) {
        url = listening;
    }
}
