/* SHA-256 against FIPS 180-4's examples, HMAC against RFC 4231. */
#include "../hws_sha256.h"
#include "hws_test.h"

#include <string.h>

static void check_hex(const uint8_t digest[HWS_SHA256_BYTES], const char *expected) {
    char hex[2 * HWS_SHA256_BYTES + 1];
    for (int i = 0; i < HWS_SHA256_BYTES; i++) {
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }
    HWS_CHECK(strcmp(hex, expected) == 0);
}

static void check_sha256(const char *text, const char *expected) {
    uint8_t digest[HWS_SHA256_BYTES];
    hws_sha256(text, strlen(text), digest);
    check_hex(digest, expected);
}

static void shouldHashTheStandardsExamples(void) {
    check_sha256("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha256("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void shouldHashAMillionLetters(void) {
    hws_sha256_t hash;
    hws_sha256_init(&hash);
    char piece[999];
    memset(piece, 'a', sizeof piece);
    size_t left = 1000000;
    while (left != 0) {
        size_t part = left < sizeof piece ? left : sizeof piece;
        hws_sha256_update(&hash, piece, part);
        left -= part;
    }
    uint8_t digest[HWS_SHA256_BYTES];
    hws_sha256_final(&hash, digest);
    check_hex(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void shouldHashTheSameInPiecesOfEverySize(void) {
    uint8_t data[300];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t) (i * 7);
    }
    for (size_t bytes = 0; bytes <= sizeof data; bytes++) {
        uint8_t whole[HWS_SHA256_BYTES], pieces[HWS_SHA256_BYTES];
        hws_sha256(data, bytes, whole);
        hws_sha256_t hash;
        hws_sha256_init(&hash);
        hws_sha256_update(&hash, data, bytes / 3);
        hws_sha256_update(&hash, data + bytes / 3, bytes - bytes / 3);
        hws_sha256_final(&hash, pieces);
        HWS_CHECK(memcmp(whole, pieces, sizeof whole) == 0);
    }
}

static void shouldProveTheRfcsCases(void) {
    uint8_t key[131], digest[HWS_SHA256_BYTES];
    memset(key, 0x0b, 20);
    hws_bytes_t pieces[2] = {{"Hi ", 3}, {"There", 5}};
    hws_hmac_sha256(key, 20, pieces, 2, digest);
    check_hex(digest, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");

    const char *text = "what do ya want for nothing?";
    pieces[0] = (hws_bytes_t) {text, strlen(text)};
    hws_hmac_sha256("Jefe", 4, pieces, 1, digest);
    check_hex(digest, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");

    memset(key, 0xaa, sizeof key);
    text = "Test Using Larger Than Block-Size Key - Hash Key First";
    pieces[0] = (hws_bytes_t) {text, strlen(text)};
    hws_hmac_sha256(key, sizeof key, pieces, 1, digest);
    check_hex(digest, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

int main(void) {
    HWS_RUN(shouldHashTheStandardsExamples);
    HWS_RUN(shouldHashAMillionLetters);
    HWS_RUN(shouldHashTheSameInPiecesOfEverySize);
    HWS_RUN(shouldProveTheRfcsCases);
    return 0;
}
