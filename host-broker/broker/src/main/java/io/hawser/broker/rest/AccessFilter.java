package io.hawser.broker.rest;

import io.hawser.broker.access.Answer;
import io.hawser.broker.access.Anyone;
import io.hawser.broker.access.Needs;
import io.hawser.broker.access.Role;
import io.quarkus.arc.ClientProxy;
import io.smallrye.mutiny.Uni;
import io.vertx.core.http.HttpServerRequest;
import jakarta.inject.Inject;
import jakarta.ws.rs.container.ContainerRequestContext;
import jakarta.ws.rs.container.ContainerResponseContext;
import jakarta.ws.rs.container.ResourceInfo;
import jakarta.ws.rs.core.HttpHeaders;
import jakarta.ws.rs.core.Response;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.util.Optional;
import org.jboss.resteasy.reactive.server.ServerRequestFilter;
import org.jboss.resteasy.reactive.server.ServerResponseFilter;

/** Authenticates the requests of the REST interface and checks their roles. */
public class AccessFilter {
    static final String CHALLENGE = "Bearer realm=\"hawser\"";
    private static final String LOGIN_PATH = "/api/v1/login";

    @Inject
    Gate gate;
    @Inject
    Caller caller;
    @Inject
    HttpServerRequest request;

    /**
     * Answers 401, or null to go on. Runs before the path lookup, so that the answer does not reveal which paths exist.
     */
    @ServerRequestFilter(preMatching = true)
    public Uni<Response> identify(ContainerRequestContext context) {
        if (LOGIN_PATH.equals(context.getUriInfo().getPath())) {
            // Login and logout need no identity; the resource checks the cookie.
            return Uni.createFrom().nullItem();
        }
        // The bean itself, because the answer may come on a thread without a request scope.
        Caller asking = ClientProxy.unwrap(caller);
        return Uni.createFrom().completionStage(gate.identify(request)).map(answer -> {
            asking.set(answer);
            return answer instanceof Answer.Refused refused ? response(refused) : null;
        });
    }

    /** Answers 403 when the caller's role is too low, or null to go on. */
    @ServerRequestFilter
    public Response role(ResourceInfo resource) {
        Method method = resource.getResourceMethod();
        if (annotation(method, Anyone.class).isPresent()) {
            return null;
        }
        Role needed = annotation(method, Needs.class).map(Needs::value).orElse(Role.ADMIN);
        if (caller.identity() != null && caller.identity().role().includes(needed)) {
            return null;
        }
        return Problem.response(Response.Status.FORBIDDEN, "this needs the role " + needed.label() + ": role="
            + (caller.identity() == null ? "none" : caller.identity().role().label()));
    }

    /** Forbids caches to store answers. */
    @ServerResponseFilter
    public void forbidCaching(ContainerResponseContext response) {
        response.getHeaders().putSingle(HttpHeaders.CACHE_CONTROL, "no-store");
    }

    /** A refusal as a problem of the interface. */
    static Response response(Answer.Refused refused) {
        Response.StatusType status = Response.Status.fromStatusCode(refused.status());
        Response.ResponseBuilder builder = Response.fromResponse(Problem.response(status, refused.detail()));
        if (refused.status() == Response.Status.UNAUTHORIZED.getStatusCode()) {
            builder.header(HttpHeaders.WWW_AUTHENTICATE, CHALLENGE);
        }
        if (refused.waitSeconds() > 0) {
            builder.header(HttpHeaders.RETRY_AFTER, refused.waitSeconds());
        }
        return builder.build();
    }

    /** Finds an annotation of the operation, which stands at the interface that the resource implements. */
    static <A extends Annotation> Optional<A> annotation(Method method, Class<A> type) {
        if (method.isAnnotationPresent(type)) {
            return Optional.of(method.getAnnotation(type));
        }
        for (Class<?> contract : method.getDeclaringClass().getInterfaces()) {
            for (Method operation : contract.getMethods()) {
                if (operation.getName().equals(method.getName()) && operation.isAnnotationPresent(type)) {
                    return Optional.of(operation.getAnnotation(type));
                }
            }
        }
        return Optional.empty();
    }
}
