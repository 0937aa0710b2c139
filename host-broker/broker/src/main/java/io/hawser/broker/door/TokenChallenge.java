package io.hawser.broker.door;

import io.hawser.broker.token.Secrets;
import io.hawser.broker.token.Token;
import io.hawser.broker.token.TokenTable;
import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.OldHandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.TokenKeys;
import java.util.Optional;

/**
 * The broker's challenge to a guest, and the check of the guest's proof. Three failures receive the same answer after
 * the same work: an unknown key id, a wrong secret, and a token that does not permit the proof of the guest's version.
 * Event loop only.
 */
final class TokenChallenge {
    /** Stands in for a token that does not exist. */
    private static final TokenKeys NOBODY = TokenKeys.ofDigest(Secrets.random(TokenKeys.KEY_BYTES));
    private static final TokenKeys.Verifier NOBODYS_VERIFIER = NOBODY.verifier();

    private final TokenTable tokens;
    private final HandshakeRecords.Hello hello;
    private final byte[] serverNonce = Secrets.random(RecordLayout.NONCE_SERVER_BYTES);
    private final HandshakeProof handshake;

    TokenChallenge(TokenTable tokens, HandshakeRecords.Hello hello) {
        this.tokens = tokens;
        this.hello = hello;
        handshake = new HandshakeProof(serverNonce, hello.payload());
    }

    /** Whether the guest uses version 1 of the handshake. */
    boolean isOld() {
        return hello.handshakeVersion() == RecordLayout.OLD_HANDSHAKE_VERSION;
    }

    /** The challenge's record. It proves to a guest of version 2 that the broker knows the guest's token. */
    byte[] record() {
        return isOld() ? HandshakeRecords.oldChallenge(serverNonce)
            : HandshakeRecords.challenge(serverNonce, handshake.ofBroker(verifier(tokens.find(hello.keyId()))));
    }

    /** The token that the guest has proved; empty when the proof is wrong. */
    Optional<Token> proved(HandshakeRecords.Proof given) {
        Optional<Token> token = tokens.find(hello.keyId());
        return (isOld() ? isOldProof(token, given) : handshake.isOfGuest(given.purpose(), verifier(token),
            given.bytes())) ? token : Optional.empty();
    }

    private static TokenKeys.Verifier verifier(Optional<Token> token) {
        return token.map(known -> known.keys().verifier()).orElse(NOBODYS_VERIFIER);
    }

    private boolean isOldProof(Optional<Token> token, HandshakeRecords.Proof given) {
        Optional<byte[]> digest = token.map(known -> known.keys().digest());
        byte[] expected = OldHandshakeProof.of(given.purpose(), digest.orElseGet(NOBODY::digest), serverNonce,
            hello.clientNonce(), hello.keyId());
        return OldHandshakeProof.matches(expected, given.bytes()) && digest.isPresent();
    }

    /** The reason for a guest whose proof is wrong. */
    String refusal() {
        return isOld() ? "the token is not known to this broker, or takes no proof of this old guest package, which "
            + "must be updated: guest=" + RecordLayout.OLD_HANDSHAKE_VERSION + " broker="
            + RecordLayout.HANDSHAKE_VERSION : "the token is not known to this broker";
    }
}
