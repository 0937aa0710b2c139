/* The proofs of the handshake against handshake_vectors.txt, as io.hawser.shm.wire.HandshakeProofTest checks them. */
#include "../hws_handshake_proof.h"
#include "hws_test.h"

#include <string.h>

#define MAX_VALUE_BYTES 256

static const char *vectors;

/* Parses the hexadecimal value of a line; returns its length. */
static size_t vector(const char *name, uint8_t value_p[MAX_VALUE_BYTES]) {
    char line[1024], found[32], hex[2 * MAX_VALUE_BYTES + 1];
    size_t bytes = 0;
    FILE *file = fopen(vectors, "r");
    HWS_CHECK(file != NULL);
    while (bytes == 0 && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%31s %512s", found, hex) == 2 && strcmp(found, name) == 0) {
            for (; hex[2 * bytes] != '\0'; bytes++) {
                unsigned value;
                HWS_CHECK(sscanf(hex + 2 * bytes, "%2x", &value) == 1);
                value_p[bytes] = (uint8_t) value;
            }
        }
    }
    fclose(file);
    HWS_CHECK(bytes > 0);
    return bytes;
}

static void check_vector(const char *name, const uint8_t value[HWS_PROOF_BYTES]) {
    uint8_t expected[MAX_VALUE_BYTES];
    HWS_CHECK(vector(name, expected) == HWS_PROOF_BYTES && memcmp(expected, value, HWS_PROOF_BYTES) == 0);
}

static void shouldDeriveTheKeysOfTheVectors(void) {
    hws_token_keys_t keys;
    hws_token_keys_derive("secret", &keys);
    check_vector("clientKey", keys.client_key);
    check_vector("storedKey", keys.stored_key);
    check_vector("serverKey", keys.server_key);
}

static void shouldMakeTheProofsOfTheVectors(void) {
    uint8_t nonce[MAX_VALUE_BYTES], hello[MAX_VALUE_BYTES], proof[HWS_PROOF_BYTES];
    HWS_CHECK(vector("nonce", nonce) == HWS_NONCE_SERVER_BYTES);
    hws_transcript_t transcript = {nonce, hello, vector("hello", hello)};
    hws_token_keys_t keys;
    hws_token_keys_derive("secret", &keys);
    hws_handshake_proof_of_guest(&keys, HWS_PURPOSE_SESSION, &transcript, proof);
    check_vector("proof", proof);
    hws_handshake_proof_of_guest(&keys, HWS_PURPOSE_STATUS, &transcript, proof);
    check_vector("status", proof);
    hws_handshake_proof_of_guest(&keys, HWS_PURPOSE_JOIN, &transcript, proof);
    check_vector("join", proof);
    hws_handshake_proof_of_guest(&keys, HWS_PURPOSE_RESUME, &transcript, proof);
    check_vector("resume", proof);
}

static void shouldKnowTheBrokersProofFromEveryOther(void) {
    uint8_t nonce[MAX_VALUE_BYTES], hello[MAX_VALUE_BYTES], proof[MAX_VALUE_BYTES];
    vector("nonce", nonce);
    hws_transcript_t transcript = {nonce, hello, vector("hello", hello)};
    hws_token_keys_t keys, others;
    hws_token_keys_derive("secret", &keys);
    hws_token_keys_derive("Secret", &others);
    vector("serverProof", proof);
    HWS_CHECK(hws_handshake_proof_is_of_broker(&keys, &transcript, proof));
    HWS_CHECK(!hws_handshake_proof_is_of_broker(&others, &transcript, proof));
    for (size_t bit = 0; bit < 8 * HWS_PROOF_BYTES; bit++) {
        proof[bit / 8] ^= (uint8_t) (1u << bit % 8);
        HWS_CHECK(!hws_handshake_proof_is_of_broker(&keys, &transcript, proof));
        proof[bit / 8] ^= (uint8_t) (1u << bit % 8);
    }
    for (size_t i = 0; i < HWS_NONCE_SERVER_BYTES; i++) {
        nonce[i] ^= 1;
        HWS_CHECK(!hws_handshake_proof_is_of_broker(&keys, &transcript, proof));
        nonce[i] ^= 1;
    }
    for (size_t i = 0; i < transcript.hello_bytes; i++) {
        hello[i] ^= 1;
        HWS_CHECK(!hws_handshake_proof_is_of_broker(&keys, &transcript, proof));
        hello[i] ^= 1;
    }
}

int main(int argc, char **argv) {
    HWS_CHECK(argc == 2);
    vectors = argv[1];
    HWS_RUN(shouldDeriveTheKeysOfTheVectors);
    HWS_RUN(shouldMakeTheProofsOfTheVectors);
    HWS_RUN(shouldKnowTheBrokersProofFromEveryOther);
    return 0;
}
