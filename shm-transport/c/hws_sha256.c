#include "hws_sha256.h"

#include <string.h>

/* FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t value, int bits) {
    return value >> bits | value << (32 - bits);
}

static uint32_t load_big_endian(const uint8_t *p) {
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static void store_big_endian(uint8_t *p, uint32_t value) {
    p[0] = (uint8_t) (value >> 24);
    p[1] = (uint8_t) (value >> 16);
    p[2] = (uint8_t) (value >> 8);
    p[3] = (uint8_t) value;
}

static void compress(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++) {
        w[i] = load_big_endian(block + 4 * i);
    }
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i];
        uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void hws_sha256_init(hws_sha256_t *hash) {
    static const uint32_t initial[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memcpy(hash->state, initial, sizeof initial);
    hash->length_bytes = 0;
}

void hws_sha256_update(hws_sha256_t *hash, const void *data, size_t bytes) {
    const uint8_t *p = data;
    size_t used = hash->length_bytes % HWS_SHA256_BLOCK_BYTES;
    hash->length_bytes += bytes;
    if (used != 0) {
        size_t room = HWS_SHA256_BLOCK_BYTES - used;
        size_t part = bytes < room ? bytes : room;
        if (part != 0) {
            memcpy(hash->block + used, p, part);
        }
        if (part < room) {
            return;
        }
        compress(hash->state, hash->block);
        p += part;
        bytes -= part;
    }
    for (; bytes >= HWS_SHA256_BLOCK_BYTES; p += HWS_SHA256_BLOCK_BYTES, bytes -= HWS_SHA256_BLOCK_BYTES) {
        compress(hash->state, p);
    }
    if (bytes != 0) {
        memcpy(hash->block, p, bytes);
    }
}

void hws_sha256_final(hws_sha256_t *hash, uint8_t digest_p[HWS_SHA256_BYTES]) {
    uint64_t bits = hash->length_bytes * 8;
    size_t used = hash->length_bytes % HWS_SHA256_BLOCK_BYTES;
    static const uint8_t padding[HWS_SHA256_BLOCK_BYTES] = {0x80};
    hws_sha256_update(hash, padding, used < 56 ? 56 - used : 120 - used);
    uint8_t length[8];
    store_big_endian(length, (uint32_t) (bits >> 32));
    store_big_endian(length + 4, (uint32_t) bits);
    hws_sha256_update(hash, length, sizeof length);
    for (int i = 0; i < 8; i++) {
        store_big_endian(digest_p + 4 * i, hash->state[i]);
    }
}

void hws_sha256(const void *data, size_t bytes, uint8_t digest_p[HWS_SHA256_BYTES]) {
    hws_sha256_t hash;
    hws_sha256_init(&hash);
    hws_sha256_update(&hash, data, bytes);
    hws_sha256_final(&hash, digest_p);
}

void hws_hmac_sha256(const void *key, size_t key_bytes, const hws_bytes_t *pieces, int count,
                     uint8_t digest_p[HWS_SHA256_BYTES]) {
    uint8_t block[HWS_SHA256_BLOCK_BYTES] = {0};
    if (key_bytes > sizeof block) {
        hws_sha256(key, key_bytes, block);
    } else if (key_bytes != 0) {
        memcpy(block, key, key_bytes);
    }
    uint8_t pad[HWS_SHA256_BLOCK_BYTES];
    for (size_t i = 0; i < sizeof block; i++) {
        pad[i] = block[i] ^ 0x36;
    }
    hws_sha256_t hash;
    hws_sha256_init(&hash);
    hws_sha256_update(&hash, pad, sizeof pad);
    for (int i = 0; i < count; i++) {
        hws_sha256_update(&hash, pieces[i].data, pieces[i].bytes);
    }
    uint8_t inner[HWS_SHA256_BYTES];
    hws_sha256_final(&hash, inner);
    for (size_t i = 0; i < sizeof block; i++) {
        pad[i] = block[i] ^ 0x5c;
    }
    hws_sha256_init(&hash);
    hws_sha256_update(&hash, pad, sizeof pad);
    hws_sha256_update(&hash, inner, sizeof inner);
    hws_sha256_final(&hash, digest_p);
}
