package io.hawser.broker.rest;

import io.hawser.broker.admin.TokenService;
import java.time.Instant;

/** A new token. Only this answer contains its secret; see openapi.yml. */
public record NewToken(String keyId, String token, Instant expires) {
    /** The token as the interface returns it. */
    static NewToken of(TokenService.Made made) {
        return new NewToken(made.token().keyId(), made.text(), made.token().expires());
    }

    @Override
    public String toString() {
        return "NewToken[" + keyId + "]"; // no secret in a log
    }
}
