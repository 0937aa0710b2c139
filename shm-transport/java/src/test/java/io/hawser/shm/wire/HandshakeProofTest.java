package io.hawser.shm.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.wire.HandshakeProof.Purpose;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class HandshakeProofTest {
    private HandshakeVectors vectors;
    private TokenKeys keys;
    private byte[] nonce;
    private byte[] hello;
    private HandshakeProof handshake;

    @BeforeEach
    void read() throws IOException {
        vectors = new HandshakeVectors();
        keys = TokenKeys.ofSecret(vectors.text("secret"));
        nonce = vectors.bytes("nonce");
        hello = vectors.bytes("hello");
        handshake = new HandshakeProof(nonce, hello);
    }

    @Test
    void shouldDeriveTheKeysOfTheVectors() {
        assertArrayEquals(vectors.bytes("digest"), keys.digest());
        assertArrayEquals(vectors.bytes("clientKey"), keys.clientKey());
        assertArrayEquals(vectors.bytes("storedKey"), keys.verifier().storedKey());
        assertArrayEquals(vectors.bytes("serverKey"), keys.verifier().serverKey());
        TokenKeys migrated = TokenKeys.ofDigest(vectors.bytes("digest"));
        assertArrayEquals(vectors.bytes("storedKey"), migrated.verifier().storedKey());
        assertArrayEquals(vectors.bytes("serverKey"), migrated.verifier().serverKey());
    }

    @Test
    void shouldMakeAndAcceptTheProofsOfTheVectors() {
        assertArrayEquals(vectors.bytes("proof"), handshake.ofGuest(Purpose.SESSION, keys));
        assertArrayEquals(vectors.bytes("status"), handshake.ofGuest(Purpose.STATUS, keys));
        assertArrayEquals(vectors.bytes("join"), handshake.ofGuest(Purpose.JOIN, keys));
        assertArrayEquals(vectors.bytes("resume"), handshake.ofGuest(Purpose.RESUME, keys));
        assertArrayEquals(vectors.bytes("serverProof"), handshake.ofBroker(keys.verifier()));
        assertTrue(handshake.isOfGuest(Purpose.SESSION, keys.verifier(), vectors.bytes("proof")));
        assertTrue(handshake.isOfGuest(Purpose.STATUS, keys.verifier(), vectors.bytes("status")));
        assertTrue(handshake.isOfBroker(keys, vectors.bytes("serverProof")));
    }

    @Test
    void shouldAcceptAProofForItsOwnHandshakeOnly() {
        byte[] proof = vectors.bytes("proof");
        TokenKeys.Verifier verifier = keys.verifier();
        assertFalse(handshake.isOfGuest(Purpose.STATUS, verifier, proof), "a proof is for one thing alone");
        assertFalse(handshake.isOfGuest(Purpose.JOIN, verifier, proof), "a proof is for one thing alone");
        assertFalse(handshake.isOfGuest(Purpose.RESUME, verifier, proof), "a proof is for one thing alone");
        assertFalse(handshake.isOfGuest(Purpose.RESUME, verifier, vectors.bytes("join")), "nor is that of a stripe");
        assertFalse(handshake.isOfGuest(Purpose.SESSION, TokenKeys.ofSecret("Secret").verifier(), proof));
        assertFalse(handshake.isOfBroker(TokenKeys.ofSecret("Secret"), vectors.bytes("serverProof")));
        for (int bit = 0; bit < 8 * proof.length; bit++) {
            assertFalse(handshake.isOfGuest(Purpose.SESSION, verifier, flipped(proof, bit)), "bit=" + bit);
            assertFalse(handshake.isOfBroker(keys, flipped(vectors.bytes("serverProof"), bit)), "bit=" + bit);
        }
        for (int bit = 0; bit < 8 * nonce.length; bit++) {
            HandshakeProof other = new HandshakeProof(flipped(nonce, bit), hello);
            assertFalse(other.isOfGuest(Purpose.SESSION, verifier, proof), "bit of the nonce=" + bit);
            assertFalse(other.isOfBroker(keys, vectors.bytes("serverProof")), "bit of the nonce=" + bit);
        }
        for (int bit = 0; bit < 8 * hello.length; bit++) {
            HandshakeProof other = new HandshakeProof(nonce, flipped(hello, bit));
            assertFalse(other.isOfGuest(Purpose.SESSION, verifier, proof), "bit of HELLO=" + bit);
            assertFalse(other.isOfBroker(keys, vectors.bytes("serverProof")), "bit of HELLO=" + bit);
        }
    }

    /** Proofs that a thief of the database could try. */
    @Test
    void shouldNotAcceptWhatTheVerifierAloneCanMake() {
        TokenKeys.Verifier verifier = keys.verifier();
        byte[] mask = TokenKeys.hmac(verifier.storedKey(), "hawser-proof-2".getBytes(), nonce, hello);
        List<byte[]> known = List.of(verifier.storedKey(), verifier.serverKey(), new byte[32], keys.digest());
        for (byte[] one : known) {
            byte[] hidden = mask.clone();
            for (int i = 0; i < hidden.length; i++) {
                hidden[i] ^= one[i];
            }
            for (byte[] proof : List.of(one, hidden, TokenKeys.hmac(one, "hawser-proof-2".getBytes(), nonce, hello))) {
                assertFalse(handshake.isOfGuest(Purpose.SESSION, verifier, proof));
            }
        }
    }

    @Test
    void shouldHideTheKeysFromLogs() {
        String shown = keys + " " + keys.verifier();
        assertEquals("TokenKeys Verifier", shown);
    }

    @Test
    void shouldKeepTheOldProofAsItWas() {
        byte[] clientNonce = Arrays.copyOfRange(hello, RecordLayout.HELLO_CLIENT_NONCE_OFFSET,
            RecordLayout.HELLO_CLIENT_NONCE_OFFSET + RecordLayout.NONCE_CLIENT_BYTES);
        byte[] proof = OldHandshakeProof.of(Purpose.SESSION, keys.digest(), nonce, clientNonce, "alpha");
        assertArrayEquals(vectors.bytes("oldProof"), proof);
        assertArrayEquals(vectors.bytes("oldStatus"), OldHandshakeProof.of(Purpose.STATUS, keys.digest(), nonce,
            clientNonce, "alpha"));
        assertTrue(OldHandshakeProof.matches(proof, vectors.bytes("oldProof")));
        assertFalse(OldHandshakeProof.matches(proof, flipped(proof, 255)));
        assertThrows(IllegalArgumentException.class,
            () -> OldHandshakeProof.of(Purpose.SESSION, keys.digest(), new byte[31], clientNonce, "alpha"));
    }

    @Test
    void shouldRefuseShortNoncesHellosKeysAndProofs() {
        assertThrows(IllegalArgumentException.class, () -> new HandshakeProof(new byte[31], hello));
        assertThrows(IllegalArgumentException.class, () -> new HandshakeProof(nonce, new byte[47]));
        assertThrows(IllegalArgumentException.class, () -> TokenKeys.ofDigest(new byte[31]));
        assertThrows(IllegalArgumentException.class, () -> new TokenKeys.Verifier(new byte[31], new byte[32]));
        assertThrows(IllegalArgumentException.class,
            () -> handshake.isOfGuest(Purpose.SESSION, keys.verifier(), new byte[31]));
    }

    private static byte[] flipped(byte[] bytes, int bit) {
        byte[] other = bytes.clone();
        other[bit / 8] ^= (byte) (1 << bit % 8);
        return other;
    }
}
