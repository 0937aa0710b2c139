package io.hawser.broker.token;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.admin.TokenService;
import io.hawser.shm.wire.TokenKeys;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;

class TokenTest {
    private static final Instant NOW = Instant.parse("2026-11-22T12:00:00Z");
    private static final TokenKeys KEYS = TokenKeys.ofSecret("secret");

    private static Token token(Instant oldProofUsed) {
        return new Token("key", "vgpu", new Token.Keys(KEYS.verifier(), KEYS.digest(), oldProofUsed), "", NOW, null,
            null);
    }

    @Test
    void shouldDropADigestThatNoOldGuestHasNeededForDays() {
        assertTrue(token(NOW).acceptsOldProof());
        Token used = token(NOW.minus(Token.OLD_PROOF_QUIET)).afterUse(NOW);
        assertFalse(used.acceptsOldProof());
        assertEquals(NOW, used.lastUsed());
        assertFalse(token(null).afterUse(NOW).acceptsOldProof(), "a token without old guests must reject old proofs");
    }

    @Test
    void shouldKeepADigestThatAnOldGuestNeeded() {
        assertTrue(token(NOW.minus(Token.OLD_PROOF_QUIET).plus(Duration.ofSeconds(1))).afterUse(NOW).acceptsOldProof());
        Token used = token(null).afterOldProof(NOW).afterUse(NOW.plusSeconds(1));
        assertTrue(used.acceptsOldProof());
        assertEquals(NOW, used.keys().oldProofUsed());
        assertEquals(NOW.plusSeconds(1), used.lastUsed());
    }

    @Test
    void shouldGiveNewTokensNoDigest() {
        TokenService.Made made = TokenService.make("key", "vgpu", "", NOW, null);
        assertFalse(made.token().acceptsOldProof());
        assertNull(made.token().afterUse(NOW).keys().digest());
        assertFalse((made + " " + made.token() + made.token().keys()).contains(made.secret()));
    }
}
