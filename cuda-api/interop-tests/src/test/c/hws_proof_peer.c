/*
 * A guest's part of the proofs. Each input line is a handshake: session|status|join SECRET NONCE HELLO SERVER_PROOF, with
 * bytes in hexadecimal. The reply is the guest's proof and whether the broker's proof is valid: PROOF true|false.
 */
#include "hws_handshake_proof.h"
#include "tests/hws_test.h"

#include <string.h>

#define MAX_HELLO_BYTES 512

static size_t take_hex(const char *hex, uint8_t *bytes_p, size_t capacity) {
    size_t count = strlen(hex) / 2;
    HWS_CHECK(count <= capacity);
    for (size_t i = 0; i < count; i++) {
        unsigned value;
        HWS_CHECK(sscanf(hex + 2 * i, "%2x", &value) == 1);
        bytes_p[i] = (uint8_t) value;
    }
    return count;
}

int main(void) {
    char purpose[16], secret[128], nonce_hex[80], hello_hex[2 * MAX_HELLO_BYTES + 1], server_hex[80];
    while (scanf("%15s %127s %79s %1024s %79s", purpose, secret, nonce_hex, hello_hex, server_hex) == 5) {
        uint8_t nonce[HWS_NONCE_SERVER_BYTES], hello[MAX_HELLO_BYTES], server[HWS_PROOF_BYTES], proof[HWS_PROOF_BYTES];
        HWS_CHECK(take_hex(nonce_hex, nonce, sizeof nonce) == sizeof nonce);
        HWS_CHECK(take_hex(server_hex, server, sizeof server) == sizeof server);
        hws_transcript_t transcript = {nonce, hello, take_hex(hello_hex, hello, sizeof hello)};
        hws_token_keys_t keys;
        hws_token_keys_derive(secret, &keys);
        hws_handshake_proof_of_guest(&keys,
                                     strcmp(purpose, "status") == 0       ? HWS_PURPOSE_STATUS
                                         : strcmp(purpose, "join") == 0   ? HWS_PURPOSE_JOIN
                                         : strcmp(purpose, "resume") == 0 ? HWS_PURPOSE_RESUME
                                                                          : HWS_PURPOSE_SESSION,
                                     &transcript, proof);
        for (size_t i = 0; i < sizeof proof; i++) {
            printf("%02x", proof[i]);
        }
        printf(" %s\n", hws_handshake_proof_is_of_broker(&keys, &transcript, server) ? "true" : "false");
        fflush(stdout);
    }
    return 0;
}
