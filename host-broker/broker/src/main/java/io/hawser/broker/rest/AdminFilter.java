package io.hawser.broker.rest;

import io.hawser.broker.BrokerLifecycle;
import io.hawser.broker.config.BrokerConfig;
import io.vertx.core.http.HttpServerRequest;
import jakarta.inject.Inject;
import jakarta.ws.rs.container.ContainerRequestContext;
import jakarta.ws.rs.core.HttpHeaders;
import jakarta.ws.rs.core.Response;
import java.net.InetSocketAddress;
import java.util.Set;
import org.jboss.resteasy.reactive.server.ServerRequestFilter;

/** Lets requests of the interface through that carry the admin token, or that settings allow without one. */
public class AdminFilter {
    /** A page of another site can make a browser reach this port under its own name, but not under these. */
    private static final Set<String> LOOPBACK_NAMES = Set.of("localhost", "127.0.0.1", "[::1]");

    @Inject
    BrokerLifecycle lifecycle;
    @Inject
    BrokerConfig config;
    @Inject
    HttpServerRequest request;

    /** Answers 401, or null to go on. Runs before paths are looked up, so that it does not tell which exist. */
    @ServerRequestFilter(preMatching = true)
    public Response filter(ContainerRequestContext context) {
        if (lifecycle.broker().adminToken().matches(context.getHeaderString(HttpHeaders.AUTHORIZATION))) {
            return null;
        }
        if (config.http().loopbackRead() && "GET".equals(context.getMethod()) && fromHere(context)) {
            return null;
        }
        Response problem = Problem.response(Response.Status.UNAUTHORIZED,
            "the admin token is needed: Authorization: Bearer <content of admin.token in the state folder>");
        return Response.fromResponse(problem).header(HttpHeaders.WWW_AUTHENTICATE, "Bearer realm=\"hawser\"").build();
    }

    private boolean fromHere(ContainerRequestContext context) {
        if (request.connection().remoteAddress(true) == null) {
            return false;
        }
        String peer = request.connection().remoteAddress(true).hostAddress();
        boolean loopback = new InetSocketAddress(peer, 0).getAddress().isLoopbackAddress();
        boolean forwarded = context.getHeaderString("X-Forwarded-For") != null
            || context.getHeaderString("Forwarded") != null;
        return loopback && !forwarded && LOOPBACK_NAMES.contains(hostName());
    }

    private String hostName() {
        return request.authority() == null ? "" : request.authority().host();
    }
}
