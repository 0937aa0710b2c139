package io.hawser.broker.rest;

import io.hawser.broker.access.Access;
import io.hawser.broker.access.Answer;
import io.quarkus.arc.ClientProxy;
import io.smallrye.common.annotation.NonBlocking;
import io.vertx.core.http.Cookie;
import io.vertx.core.http.HttpServerRequest;
import jakarta.inject.Inject;
import jakarta.ws.rs.BadRequestException;
import jakarta.ws.rs.ForbiddenException;
import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.NewCookie;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jboss.resteasy.reactive.RestResponse;

/** Creates and ends logins. */
@NonBlocking
public class LoginResource implements LoginApi {
    /** Longer than any password or token; stops comparisons of very long ones. */
    private static final int MAX_CHARACTERS = 256;

    @Inject
    Gate gate;
    @Inject
    Caller caller;
    @Inject
    HttpServerRequest request;

    @Override
    public Me getMe() {
        return Me.of(caller.identity());
    }

    @Override
    public CompletionStage<RestResponse<Me>> login(LoginRequest given) {
        boolean byName = given != null && given.name() != null && given.password() != null && given.token() == null;
        boolean byToken = given != null && given.name() == null && given.password() == null && given.token() != null;
        if (!byName && !byToken) {
            throw new BadRequestException("a login must be by name and password, or by token");
        }
        if (longest(given) > MAX_CHARACTERS) {
            throw new BadRequestException("a name, password or token must have at most " + MAX_CHARACTERS
                + " characters");
        }
        String peer = Gate.peer(request);
        CompletionStage<Access.LoginResult> result = byToken
            ? CompletableFuture.completedFuture(gate.access().login(given.token(), peer))
            : gate.access().login(given.name(), given.password().toCharArray(), peer);
        boolean secure = request.isSSL();
        Caller asking = ClientProxy.unwrap(caller);
        return result.thenApply(made -> {
            asking.set(gate.rememberPeer(made.answer(), peer));
            return switch (made.answer()) {
                case Answer.Known known -> RestResponse.ResponseBuilder.ok(Me.of(known.identity()))
                    .cookie(cookie(made.cookie(), secure, NewCookie.DEFAULT_MAX_AGE)).build();
                case Answer.Refused refused -> throw new WebApplicationException(refused.detail(),
                    AccessFilter.response(refused));
            };
        });
    }

    private static int longest(LoginRequest given) {
        return given.token() != null ? given.token().length()
            : Math.max(given.name().length(), given.password().length());
    }

    @Override
    public RestResponse<Void> logout() {
        Cookie cookie = request.getCookie(Gate.COOKIE);
        if (cookie != null && !"1".equals(request.getHeader(Gate.MARK))) {
            throw new ForbiddenException("a change by a login must carry the header X-Hawser-Request: 1");
        }
        if (cookie != null) {
            gate.access().logout(cookie.getValue());
        }
        return RestResponse.ResponseBuilder.<Void>noContent().cookie(cookie("", request.isSSL(), 0)).build();
    }

    private static NewCookie cookie(String value, boolean secure, int maxAge) {
        return new NewCookie.Builder(Gate.COOKIE).value(value).path("/").httpOnly(true).secure(secure)
            .sameSite(NewCookie.SameSite.STRICT).maxAge(maxAge).build();
    }
}
