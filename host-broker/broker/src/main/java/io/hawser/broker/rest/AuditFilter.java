package io.hawser.broker.rest;

import io.hawser.broker.access.Identity;
import io.hawser.broker.audit.AuditEntry;
import io.hawser.broker.audit.AuditLog;
import io.vertx.core.http.HttpServerRequest;
import jakarta.inject.Inject;
import jakarta.ws.rs.container.ContainerRequestContext;
import jakarta.ws.rs.container.ContainerResponseContext;
import jakarta.ws.rs.container.ResourceInfo;
import jakarta.ws.rs.core.Response;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.RecordComponent;
import java.time.Instant;
import java.util.List;
import java.util.StringJoiner;
import org.jboss.resteasy.reactive.server.ServerResponseFilter;

/** Writes each request that changes something, or tried to, to the audit log, without the request's body. */
public class AuditFilter {
    /** Fields of an answer that name the created object; none of them is a secret. */
    private static final List<String> NAMES = List.of("name", "keyId", "id");

    @Inject
    Gate gate;
    @Inject
    Caller caller;
    @Inject
    HttpServerRequest request;

    /** Writes the entry after the resource made the answer and before the server sends it. */
    @ServerResponseFilter
    public void note(ContainerRequestContext asked, ContainerResponseContext answer, ResourceInfo resource) {
        AuditLog audit = gate.audit();
        if (audit == null || "GET".equals(asked.getMethod()) || "HEAD".equals(asked.getMethod())
            || "OPTIONS".equals(asked.getMethod())) {
            return;
        }
        Identity identity = caller.identity();
        boolean found = resource != null && resource.getResourceMethod() != null;
        String action = found ? resource.getResourceMethod().getName()
            : asked.getMethod() + " " + asked.getUriInfo().getPath();
        audit.add(new AuditEntry(0, Instant.now(), caller.name(), identity == null ? "" : identity.role().label(),
            Gate.peer(request), action, target(asked, answer), outcome(answer.getStatus()), detail(answer)));
    }

    private static String outcome(int status) {
        return status < 400 ? "done" : status < 500 ? "refused" : "failed";
    }

    private static String detail(ContainerResponseContext answer) {
        return answer.getEntity() instanceof Problem problem ? problem.detail()
            : answer.getStatus() < 400 ? "" : Response.Status.fromStatusCode(answer.getStatus()) + "";
    }

    private static String target(ContainerRequestContext asked, ContainerResponseContext answer) {
        StringJoiner target = new StringJoiner(" ");
        asked.getUriInfo().getPathParameters().forEach((name, values) -> target.add(name + "="
            + String.join(",", values)));
        if (answer.getStatus() < 400 && answer.getEntity() instanceof Record made && !(made instanceof Me)) {
            for (RecordComponent component : made.getClass().getRecordComponents()) {
                if (NAMES.contains(component.getName())) {
                    target.add(component.getName() + "=" + value(component, made));
                }
            }
        }
        return target.toString();
    }

    private static Object value(RecordComponent component, Record made) {
        try {
            return component.getAccessor().invoke(made);
        } catch (IllegalAccessException | InvocationTargetException e) {
            throw new IllegalStateException(e);
        }
    }
}
