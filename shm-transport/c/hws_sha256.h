/*
 * SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for the handshake's proof and the names of device code images. The guest
 * library may depend only on glibc, so it has its own implementation.
 */
#ifndef HWS_SHA256_H
#define HWS_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define HWS_SHA256_BYTES 32
#define HWS_SHA256_BLOCK_BYTES 64

typedef struct hws_sha256 {
    uint32_t state[8];
    uint64_t length_bytes;
    uint8_t block[HWS_SHA256_BLOCK_BYTES];
} hws_sha256_t;

void hws_sha256_init(hws_sha256_t *hash);
void hws_sha256_update(hws_sha256_t *hash, const void *data, size_t bytes);
/* Writes the digest. The object must be initialised again before another use. */
void hws_sha256_final(hws_sha256_t *hash, uint8_t digest_p[HWS_SHA256_BYTES]);

/* The digest of one piece of memory. */
void hws_sha256(const void *data, size_t bytes, uint8_t digest_p[HWS_SHA256_BYTES]);

/* One piece of an HMAC's message. */
typedef struct hws_bytes {
    const void *data;
    size_t bytes;
} hws_bytes_t;

/* HMAC-SHA256 over the concatenation of `count` pieces. A key longer than a block is hashed first. */
void hws_hmac_sha256(const void *key, size_t key_bytes, const hws_bytes_t *pieces, int count,
                     uint8_t digest_p[HWS_SHA256_BYTES]);

#endif
