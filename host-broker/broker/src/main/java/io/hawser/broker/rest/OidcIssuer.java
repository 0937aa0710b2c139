package io.hawser.broker.rest;

import io.hawser.broker.access.Answer;
import io.hawser.broker.access.Identity;
import io.hawser.broker.access.Role;
import io.hawser.broker.access.TokenIssuer;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.model.Printable;
import io.quarkus.oidc.AccessTokenCredential;
import io.quarkus.oidc.TenantIdentityProvider;
import io.quarkus.security.identity.SecurityIdentity;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.inject.Instance;
import jakarta.inject.Inject;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.eclipse.microprofile.jwt.JsonWebToken;
import org.jboss.logging.Logger;

/**
 * Authenticates tokens of the OpenID Connect issuer of {@code hawser.oidc.issuer}. Quarkus checks the signature by the
 * issuer's published keys, the issuer, the audience and the expiry. This class maps the token's roles.
 */
@ApplicationScoped
public class OidcIssuer implements TokenIssuer {
    private static final Logger LOG = Logger.getLogger(OidcIssuer.class);
    private static final int MAX_NAME_CHARACTERS = 128;

    @Inject
    BrokerConfig config;
    @Inject
    Instance<TenantIdentityProvider> provider;

    @Override
    public CompletionStage<Answer> identify(String token) {
        if (config.oidc().issuer().isEmpty()) {
            return null;
        }
        // Three parts: only such a token can be verified by the issuer's keys without a request to the issuer.
        if (token.chars().filter(c -> c == '.').count() != 2) {
            return CompletableFuture.completedFuture(refused("the bearer token is not a token of the issuer"));
        }
        return provider.get().authenticate(new AccessTokenCredential(token)).map(this::answer)
            .onFailure().recoverWithItem(failure -> {
                LOG.debugf("a bearer token was refused: %s", failure.getMessage());
                return refused("the bearer token is not accepted: it must be signed by the issuer, for this audience, "
                    + "and not have expired");
            }).subscribeAsCompletionStage();
    }

    private Answer answer(SecurityIdentity identity) {
        String name = Printable.text(identity.getPrincipal().getName(), MAX_NAME_CHARACTERS);
        Optional<Role> role = role(identity);
        if (role.isEmpty()) {
            return new Answer.Refused(403, "the token has none of the roles of hawser.oidc", 0, name);
        }
        long endSeconds = identity.getPrincipal() instanceof JsonWebToken jwt ? jwt.getExpirationTime() : 0;
        return new Answer.Known(new Identity(name, role.get(), Identity.Via.OIDC),
            () -> System.currentTimeMillis() / 1000 < endSeconds);
    }

    private Optional<Role> role(SecurityIdentity identity) {
        BrokerConfig.Oidc oidc = config.oidc();
        if (identity.hasRole(oidc.adminRole())) {
            return Optional.of(Role.ADMIN);
        }
        if (identity.hasRole(oidc.operatorRole())) {
            return Optional.of(Role.OPERATOR);
        }
        return identity.hasRole(oidc.viewerRole()) ? Optional.of(Role.VIEWER) : Optional.empty();
    }

    private static Answer refused(String detail) {
        return new Answer.Refused(401, detail, 0, "");
    }
}
