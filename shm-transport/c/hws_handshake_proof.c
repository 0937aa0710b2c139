#include "hws_handshake_proof.h"

#include <string.h>

_Static_assert(HWS_PROOF_BYTES == HWS_SHA256_BYTES, "a proof is an HMAC-SHA256, or a key hidden by one");

/* Each key and each proof has its own word, so that none can replace another. The 2 is HWS_HANDSHAKE_VERSION. */
static const char client_word[] = "hawser-client-key-2", server_word[] = "hawser-server-key-2";
static const char broker_word[] = "hawser-server-2";
static const char *const guest_words[] = {[HWS_PURPOSE_SESSION] = "hawser-proof-2",
                                          [HWS_PURPOSE_STATUS] = "hawser-status-2",
                                          [HWS_PURPOSE_JOIN] = "hawser-join-2",
                                          [HWS_PURPOSE_RESUME] = "hawser-resume-2"};
_Static_assert(HWS_HANDSHAKE_VERSION == 2, "the words name the version");

static void prove(const uint8_t *key, const char *word, const hws_transcript_t *transcript, uint8_t *digest_p) {
    hws_bytes_t pieces[3] = {{word, strlen(word)},
                             {transcript->server_nonce, HWS_NONCE_SERVER_BYTES},
                             {transcript->hello, transcript->hello_bytes}};
    hws_hmac_sha256(key, HWS_SHA256_BYTES, pieces, 3, digest_p);
}

void hws_token_keys_derive(const char *secret, hws_token_keys_t *keys_p) {
    uint8_t digest[HWS_SHA256_BYTES];
    hws_bytes_t client = {client_word, strlen(client_word)}, server = {server_word, strlen(server_word)};
    hws_sha256(secret, strlen(secret), digest);
    hws_hmac_sha256(digest, sizeof digest, &client, 1, keys_p->client_key);
    hws_hmac_sha256(digest, sizeof digest, &server, 1, keys_p->server_key);
    hws_sha256(keys_p->client_key, sizeof keys_p->client_key, keys_p->stored_key);
    explicit_bzero(digest, sizeof digest);
}

void hws_handshake_proof_of_guest(const hws_token_keys_t *keys, hws_purpose_t purpose,
                                  const hws_transcript_t *transcript, uint8_t proof_p[HWS_PROOF_BYTES]) {
    prove(keys->stored_key, guest_words[purpose], transcript, proof_p);
    for (size_t i = 0; i < HWS_PROOF_BYTES; i++) {
        proof_p[i] ^= keys->client_key[i];
    }
}

bool hws_handshake_proof_is_of_broker(const hws_token_keys_t *keys, const hws_transcript_t *transcript,
                                      const uint8_t proof[HWS_PROOF_BYTES]) {
    uint8_t expected[HWS_PROOF_BYTES], difference = 0;
    prove(keys->server_key, broker_word, transcript, expected);
    for (size_t i = 0; i < sizeof expected; i++) {
        difference |= (uint8_t) (expected[i] ^ proof[i]);
    }
    return difference == 0;
}
