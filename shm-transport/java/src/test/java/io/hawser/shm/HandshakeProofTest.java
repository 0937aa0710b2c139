package io.hawser.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class HandshakeProofTest {
    private final byte[] key = HandshakeProof.key("secret");
    private final byte[] serverNonce = new byte[RecordLayout.NONCE_SERVER_BYTES];
    private final byte[] clientNonce = new byte[RecordLayout.NONCE_CLIENT_BYTES];

    @Test
    void shouldBeHmacOfDomainNoncesAndKeyId() {
        // openssl: printf 'hawser-proof-1' and 48 zero bytes and 'alpha' | openssl dgst -sha256 -mac HMAC
        //          -macopt hexkey:$(printf secret | sha256sum)
        assertEquals("d75a1a775c00cf09a910aa9ffbd03fde929b566c7fbe2cbf6ed3072b33dda7d8",
                HexFormat.of().formatHex(HandshakeProof.of(key, serverNonce, clientNonce, "alpha")));
    }

    @Test
    void shouldDependOnEveryInput() {
        byte[] proof = HandshakeProof.of(key, serverNonce, clientNonce, "alpha");
        assertTrue(HandshakeProof.matches(proof, HandshakeProof.of(key, serverNonce, clientNonce, "alpha")));
        byte[] other = serverNonce.clone();
        other[31] = 1;
        assertFalse(HandshakeProof.matches(proof, HandshakeProof.of(HandshakeProof.Purpose.STATUS, key, serverNonce,
                clientNonce, "alpha")), "the proof for one thing must not be one for another");
        assertFalse(HandshakeProof.matches(proof, HandshakeProof.of(key, other, clientNonce, "alpha")));
        other = clientNonce.clone();
        other[0] = 1;
        assertFalse(HandshakeProof.matches(proof, HandshakeProof.of(key, serverNonce, other, "alpha")));
        assertFalse(HandshakeProof.matches(proof, HandshakeProof.of(key, serverNonce, clientNonce, "alphb")));
        assertFalse(HandshakeProof.matches(proof,
                HandshakeProof.of(HandshakeProof.key("Secret"), serverNonce, clientNonce, "alpha")));
    }

    @Test
    void shouldRefuseShortNonce() {
        assertThrows(IllegalArgumentException.class,
                () -> HandshakeProof.of(key, new byte[31], clientNonce, "alpha"));
    }
}
