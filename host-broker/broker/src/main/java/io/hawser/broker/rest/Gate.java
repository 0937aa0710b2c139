package io.hawser.broker.rest;

import io.hawser.broker.access.Access;
import io.hawser.broker.access.Answer;
import io.hawser.broker.access.Credentials;
import io.hawser.broker.access.Identity;
import io.hawser.broker.access.Role;
import io.hawser.broker.access.UsersFile;
import io.hawser.broker.audit.AuditEntry;
import io.hawser.broker.audit.AuditLog;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.store.Database;
import io.hawser.broker.token.AdminToken;
import io.hawser.broker.web.WebDoor;
import io.quarkus.vertx.http.runtime.filters.Filters;
import io.vertx.core.http.Cookie;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.ext.web.RoutingContext;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.event.Observes;
import jakarta.inject.Inject;
import java.net.InetAddress;
import java.time.Instant;
import java.util.Set;
import java.util.concurrent.CompletionStage;

/**
 * Authenticates the requests of the web server. The page and other static files, the contract and the health checks are
 * public and contain no data of a tenant. Metrics need the role viewer. Paths added under {@code /q} later need it too.
 */
@ApplicationScoped
public class Gate {
    /** The cookie of a login. */
    static final String COOKIE = "hawser_session";

    /**
     * Host names of loopback requests. A page of another site can make a browser reach this port under its own name,
     * but not under these.
     */
    private static final Set<String> LOOPBACK_NAMES = Set.of("localhost", "127.0.0.1", "[::1]");
    static final String MARK = "X-Hawser-Request";
    /** Order before all of Quarkus' own routes. */
    private static final int FIRST = 10_000;

    @Inject
    BrokerConfig config;
    @Inject
    OidcIssuer issuer;
    @Inject
    WebDoor door;

    private volatile Access access;
    private volatile AuditLog audit;

    /** Opens the gate; the call precedes all requests. */
    public void open(AdminToken adminToken, UsersFile users, Database database) {
        audit = new AuditLog(database, config.audit().maxEntries());
        BrokerConfig.Http http = config.http();
        access = new Access(adminToken, users, issuer, new Access.Limits(http.maxFailedLogins(), http.loginIdle(),
            http.loginLife(), http.loopbackRead()), System::nanoTime);
    }

    /** Closes the gate. */
    public void close() {
        if (access != null) {
            access.close();
            audit.close();
        }
    }

    /** Authenticates callers. */
    public Access access() {
        return access;
    }

    /**
     * Writes an entry that the broker has deleted an expired vGPU, or failed to.
     *
     * @param failure why it failed; empty for a success.
     */
    public void noteExpired(String vgpu, String failure) {
        AuditLog log = audit;
        if (log != null) {
            // An admin's act: its creator has ordered the deletion together with the vGPU.
            log.add(new AuditEntry(0, Instant.now(), "the broker", Role.ADMIN.label(), "", "expireVgpu", "name=" + vgpu,
                failure.isEmpty() ? "done" : "failed", failure));
        }
    }

    /** The audit log; null before {@link #open}. */
    AuditLog audit() {
        return audit;
    }

    /** Identifies the sender of a request; the stage does not fail. */
    CompletionStage<Answer> identify(HttpServerRequest request) {
        Cookie cookie = request.getCookie(COOKIE);
        String peer = peer(request); // read now: the request is gone on the thread that compares passwords
        return access.identify(new Credentials(request.method().name(), request.getHeader(HttpHeaders.AUTHORIZATION),
            cookie == null ? null : cookie.getValue(), "1".equals(request.getHeader(MARK)), peer,
            isFromLoopback(request))).thenApply(answer -> rememberPeer(answer, peer));
    }

    /** Returns the same answer. If it is a valid login, the door prefers the peer from then on. */
    Answer rememberPeer(Answer answer, String peer) {
        if (answer instanceof Answer.Known known && known.identity().via() != Identity.Via.LOOPBACK
            && !peer.isEmpty()) {
            door.noteLogin(peer);
        }
        return answer;
    }

    /** Address of the connection's other end: the proxy's address where a proxy connects. */
    static String peer(HttpServerRequest request) {
        return request.connection().remoteAddress(true) == null ? ""
            : request.connection().remoteAddress(true).hostAddress();
    }

    private static boolean isFromLoopback(HttpServerRequest request) {
        String peer = peer(request);
        boolean forwarded = request.getHeader("X-Forwarded-For") != null || request.getHeader("Forwarded") != null;
        return !peer.isEmpty() && InetAddress.ofLiteral(peer).isLoopbackAddress() && !forwarded
            && LOOPBACK_NAMES.contains(request.authority() == null ? "" : request.authority().host());
    }

    void guard(@Observes Filters filters) {
        filters.register(this::guard, FIRST);
    }

    private void guard(RoutingContext context) {
        String path = context.normalizedPath();
        boolean guarded = path.startsWith("/q/") && !path.startsWith("/q/health") && !path.equals("/q/openapi")
            && !(path.equals("/q/metrics") && config.metrics().open());
        if (!guarded) {
            context.next();
            return;
        }
        context.request().pause();
        identify(context.request()).thenAccept(answer -> context.vertx().runOnContext(now -> {
            context.request().resume();
            if (answer instanceof Answer.Known known && known.identity().role().includes(Role.VIEWER)) {
                context.next();
            } else if (answer instanceof Answer.Refused refused) {
                refuse(context.response(), refused);
            }
        }));
    }

    private static void refuse(HttpServerResponse response, Answer.Refused refused) {
        response.setStatusCode(refused.status()).putHeader(HttpHeaders.CONTENT_TYPE, "text/plain");
        if (refused.status() == 401) {
            response.putHeader("WWW-Authenticate", AccessFilter.CHALLENGE);
        }
        response.end(refused.detail() + "\n");
    }
}
