/*
 * The proofs by which guest and broker show that they have a token's secret, or its verifier (architecture, section
 * 2.3). HandshakeProof.java is the same in Java. Each proof covers the broker's nonce and the whole payload of HELLO.
 * Any thread.
 */
#ifndef HWS_HANDSHAKE_PROOF_H
#define HWS_HANDSHAKE_PROOF_H

#include "hws_layout.h"
#include "hws_sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The purpose of a guest's proof. */
typedef enum hws_purpose {
    HWS_PURPOSE_SESSION, /* PROOF */
    HWS_PURPOSE_STATUS,  /* ASK_STATUS */
    HWS_PURPOSE_JOIN,    /* JOIN */
    HWS_PURPOSE_RESUME,  /* RESUME */
} hws_purpose_t;

/* The two sides' part of one handshake. */
typedef struct hws_transcript {
    const uint8_t *server_nonce; /* of CHALLENGE, HWS_NONCE_SERVER_BYTES */
    const uint8_t *hello;        /* payload of HELLO as sent */
    size_t hello_bytes;
} hws_transcript_t;

/* Keys of HWS_SHA256_BYTES, derived from a token's secret. TokenKeys.java is the same in Java. */
typedef struct hws_token_keys {
    uint8_t client_key[HWS_SHA256_BYTES]; /* only the guest has it */
    uint8_t stored_key[HWS_SHA256_BYTES]; /* SHA-256 of client_key; the broker keeps it */
    uint8_t server_key[HWS_SHA256_BYTES]; /* the broker keeps it */
} hws_token_keys_t;

/* Derives the keys from a secret, the part of a token after its dot. */
void hws_token_keys_derive(const char *secret, hws_token_keys_t *keys_p);

/* The guest's proof: its client key, hidden by an HMAC under the stored key. */
void hws_handshake_proof_of_guest(const hws_token_keys_t *keys, hws_purpose_t purpose,
                                  const hws_transcript_t *transcript, uint8_t proof_p[HWS_PROOF_BYTES]);

/*
 * Whether a broker with the token's verifier made the proof. Its time does not depend on where a wrong proof differs.
 */
bool hws_handshake_proof_is_of_broker(const hws_token_keys_t *keys, const hws_transcript_t *transcript,
                                      const uint8_t proof[HWS_PROOF_BYTES]);

#endif
