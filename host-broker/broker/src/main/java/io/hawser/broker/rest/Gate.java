package io.hawser.broker.rest;

import io.hawser.broker.access.Access;
import io.hawser.broker.access.Answer;
import io.hawser.broker.access.Credentials;
import io.hawser.broker.access.Identity;
import io.hawser.broker.access.Role;
import io.hawser.broker.access.UsersFile;
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
import java.util.Set;
import java.util.concurrent.CompletionStage;

/**
 * What all doors of the web server share: who sends a request. The page and other static files, the contract and the
 * health are for everyone and hold nothing of a tenant; metrics need a viewer, and so does what is added under
 * {@code /q} later.
 */
@ApplicationScoped
public class Gate {
    /** The cookie of a login. */
    static final String COOKIE = "hawser_session";

    /** A page of another site can make a browser reach this port under its own name, but not under these. */
    private static final Set<String> LOOPBACK_NAMES = Set.of("localhost", "127.0.0.1", "[::1]");
    static final String MARK = "X-Hawser-Request";
    /** Before all of Quarkus' own routes. */
    private static final int FIRST = 10_000;

    @Inject
    BrokerConfig config;
    @Inject
    OidcIssuer issuer;
    @Inject
    WebDoor door;

    private volatile Access access;
    private volatile AuditLog audit;

    /** Begins; before requests come. */
    public void open(AdminToken adminToken, UsersFile users, Database database) {
        audit = new AuditLog(database, config.audit().maxEntries());
        BrokerConfig.Http http = config.http();
        access = new Access(adminToken, users, issuer, new Access.Limits(http.maxFailedLogins(), http.loginIdle(),
            http.loginLife(), http.loopbackRead()), System::nanoTime);
    }

    /** Ends. */
    public void close() {
        if (access != null) {
            access.close();
            audit.close();
        }
    }

    /** Tells who someone is. */
    public Access access() {
        return access;
    }

    /** The audit log; null before requests come. */
    AuditLog audit() {
        return audit;
    }

    /** Who sends a request; the stage does not fail. */
    CompletionStage<Answer> identify(HttpServerRequest request) {
        Cookie cookie = request.getCookie(COOKIE);
        String peer = peer(request); // now: the request is no longer at hand where a password is compared
        return access.identify(new Credentials(request.method().name(), request.getHeader(HttpHeaders.AUTHORIZATION),
            cookie == null ? null : cookie.getValue(), "1".equals(request.getHeader(MARK)), peer,
            fromHere(request))).thenApply(answer -> noted(answer, peer));
    }

    /** The same answer; the door knows the peer from now on if the answer is a valid login. */
    Answer noted(Answer answer, String peer) {
        if (answer instanceof Answer.Known known && known.identity().via() != Identity.Via.LOOPBACK
            && !peer.isEmpty()) {
            door.loggedIn(peer);
        }
        return answer;
    }

    /** Address of the other end of the connection: a proxy's where there is one. */
    static String peer(HttpServerRequest request) {
        return request.connection().remoteAddress(true) == null ? ""
            : request.connection().remoteAddress(true).hostAddress();
    }

    private static boolean fromHere(HttpServerRequest request) {
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
