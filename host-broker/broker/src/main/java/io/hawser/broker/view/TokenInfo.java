package io.hawser.broker.view;

import io.hawser.broker.token.Token;
import java.time.Instant;

/** A token without its secret; see openapi.yml. */
public record TokenInfo(String keyId, String vgpu, String note, Instant created, Instant expires, Instant lastUsed,
    boolean acceptsOldProof, Instant oldProofUsed) {
    /** Converts a token to its form in the REST interface. */
    public static TokenInfo of(Token token) {
        return new TokenInfo(token.keyId(), token.vgpu(), token.note(), token.created(), token.expires(),
            token.lastUsed(), token.acceptsOldProof(), token.keys().oldProofUsed());
    }
}
