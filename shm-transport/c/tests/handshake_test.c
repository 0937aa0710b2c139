/* The handshake with peers that lie, stall or break off; the configuration. */
#include "../hws_handshake.h"
#include "../hws_handshake_proof.h"
#include "../hws_record.h"
#include "../tcp/hws_tcp.h"
#include "hws_test.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const hws_config_t config = {.key_id = "key", .secret = "secret", .connect_timeout_ms = 20000};

/* How the other end proves itself in the CHALLENGE at the beginning of its answer. */
typedef enum proof_kind { PROOF_OF_BROKER, PROOF_OF_ANOTHER_TOKEN, PROOF_OF_ANOTHER_HELLO } proof_kind_t;

typedef struct answer {
    int fd;
    proof_kind_t kind;
    uint8_t bytes[1024];
    size_t count;
    uint32_t guest_records; /* received after HELLO */
    uint32_t guest_opcode;  /* of the last of them */
    uint8_t guest_offer[HWS_RDMA_END_BYTES];
    uint8_t guest_proof[HWS_PROOF_BYTES];
    uint8_t hello[1024];
    size_t hello_bytes;
} answer_t;

static answer_t last; /* result of the last exchange */

static size_t put_record(uint8_t *bytes, uint32_t opcode, const void *payload, uint32_t payload_bytes) {
    hws_record_header_t header = {.length_bytes = (int32_t) (HWS_HEADER_BYTES + payload_bytes), .opcode = opcode};
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, payload, payload_bytes);
    return sizeof header + payload_bytes;
}

typedef struct welcome {
    uint32_t version, devices;
    uint64_t session, window;
    uint32_t record, bulk;
    uint64_t hash;
} welcome_t;

static welcome_t good_welcome(void) {
    return (welcome_t) {HWS_PROTOCOL_VERSION, 2, 77, HWS_CREDIT_WINDOW_BYTES, HWS_MAX_RECORD_BYTES,
                        HWS_MAX_BULK_BYTES,   0};
}

/* A challenge; its proof is filled in when HELLO is known. */
static size_t put_challenge(uint8_t *bytes) {
    uint8_t challenge[HWS_CHALLENGE_FIXED_BYTES] = {9};
    return put_record(bytes, HWS_CONTROL_CHALLENGE, challenge, sizeof challenge);
}

/* A broker's answer: a challenge and a WELCOME. */
static size_t put_dialogue(uint8_t *bytes, const welcome_t *welcome) {
    size_t used = put_challenge(bytes);
    return used + put_record(bytes + used, HWS_CONTROL_WELCOME, welcome, sizeof *welcome);
}

/* Whether this number of bytes arrived; false when the guest has gone. */
static bool read_all(int fd, void *target, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        ssize_t n = read(fd, (uint8_t *) target + at, bytes - at);
        if (n <= 0) {
            return false;
        }
        at += (size_t) n;
    }
    return true;
}

/* Fills in the proof of a CHALLENGE that begins the answer, whole or cut. */
static void prove(answer_t *answer) {
    hws_record_header_t header;
    uint8_t proof[HWS_PROOF_BYTES];
    size_t at = HWS_HEADER_BYTES + HWS_CHALLENGE_SERVER_PROOF_OFFSET;
    memcpy(&header, answer->bytes, sizeof header);
    if (answer->count < sizeof header || header.opcode != HWS_CONTROL_CHALLENGE) {
        return;
    }
    hws_token_keys_t keys;
    hws_token_keys_derive(answer->kind == PROOF_OF_ANOTHER_TOKEN ? "another" : config.secret, &keys);
    uint8_t hello[sizeof answer->hello];
    memcpy(hello, answer->hello, sizeof hello);
    hello[0] ^= answer->kind == PROOF_OF_ANOTHER_HELLO;
    hws_bytes_t pieces[3] = {{"hawser-server-2", 15},
                             {answer->bytes + HWS_HEADER_BYTES, HWS_NONCE_SERVER_BYTES},
                             {hello, answer->hello_bytes}};
    hws_hmac_sha256(keys.server_key, sizeof keys.server_key, pieces, 3, proof);
    memcpy(answer->bytes + at, proof, sizeof proof);
}

static void *speak(void *argument) {
    answer_t *answer = argument;
    hws_record_header_t header;
    HWS_CHECK(read_all(answer->fd, &header, sizeof header) && header.opcode == HWS_CONTROL_HELLO);
    answer->hello_bytes = (size_t) header.length_bytes - sizeof header;
    HWS_CHECK(answer->hello_bytes <= sizeof answer->hello && read_all(answer->fd, answer->hello, answer->hello_bytes));
    prove(answer);
    HWS_CHECK(send(answer->fd, answer->bytes, answer->count, MSG_NOSIGNAL) == (ssize_t) answer->count);
    shutdown(answer->fd, SHUT_WR);
    while (read_all(answer->fd, &header, sizeof header)) {
        bool opens = header.opcode == HWS_CONTROL_OPEN;
        uint64_t offer_bytes = 0;
        HWS_CHECK(header.length_bytes
                  == (opens ? HWS_HEADER_BYTES + HWS_OPEN_FIXED_BYTES + HWS_RDMA_END_BYTES
                            : HWS_HEADER_BYTES + HWS_PROOF_BYTES));
        HWS_CHECK(read_all(answer->fd, answer->guest_proof, sizeof answer->guest_proof));
        HWS_CHECK(!opens
                  || (read_all(answer->fd, &offer_bytes, sizeof offer_bytes) && offer_bytes == HWS_RDMA_END_BYTES
                      && read_all(answer->fd, answer->guest_offer, HWS_RDMA_END_BYTES)));
        answer->guest_opcode = header.opcode;
        answer->guest_records++;
    }
    return NULL;
}

static proof_kind_t kind_of_proof = PROOF_OF_BROKER;
static const uint8_t *offer; /* of RDMA, by the next handshake; NULL: none */
static hws_rdma_answer_t answered;

/* Runs the handshake with a peer that sends these bytes. Returns a WELCOME, or a text of at most text_capacity. */
static int talk(const uint8_t *bytes, size_t count, hws_welcome_t *welcome_p, char *text_p, size_t text_capacity,
                char *error_p, size_t capacity) {
    int ends[2];
    pthread_t thread;
    answer_t answer = {.count = count, .kind = kind_of_proof};
    HWS_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    answer.fd = ends[1];
    memcpy(answer.bytes, bytes, count);
    memset(text_p == NULL ? (void *) welcome_p : text_p, 0x5a, text_p == NULL ? sizeof *welcome_p : text_capacity);
    HWS_CHECK(pthread_create(&thread, NULL, speak, &answer) == 0);
    hws_carrier_t *carrier = hws_tcp_adopt(ends[0]);
    int rc = text_p != NULL ? hws_handshake_ask_status(carrier, &config, 1, text_p, text_capacity, error_p, capacity)
        : offer != NULL ? hws_handshake_with_offer(carrier, &config, 1, offer, welcome_p, &answered, error_p, capacity)
                        : hws_handshake(carrier, &config, 1, welcome_p, error_p, capacity);
    carrier->ops->shutdown(carrier);
    pthread_join(thread, NULL);
    carrier->ops->close(carrier);
    free(carrier);
    close(ends[1]);
    last = answer;
    return rc;
}

static int shake(const uint8_t *bytes, size_t count, hws_welcome_t *welcome_p, char *error_p, size_t capacity) {
    return talk(bytes, count, welcome_p, NULL, 0, error_p, capacity);
}

/* A challenge, and a status of this length whose header gives the length `stated`. */
static size_t put_status(uint8_t *bytes, uint32_t length, uint32_t stated) {
    uint8_t payload[256] = {0};
    memcpy(payload, &stated, sizeof stated);
    memset(payload + HWS_STATUS_FIXED_BYTES, 'x', length);
    size_t used = put_challenge(bytes);
    return used
        + put_record(bytes + used, HWS_CONTROL_STATUS, payload, HWS_STATUS_FIXED_BYTES + (uint32_t) hws_pad8(length));
}

static void shouldTakeAStatusThatFits(void) {
    uint8_t bytes[512];
    char error[256], text[32];
    HWS_CHECK(talk(bytes, put_status(bytes, 31, 31), NULL, text, sizeof text, error, sizeof error) == 0);
    HWS_CHECK(strlen(text) == 31 && text[0] == 'x' && text[30] == 'x');
    HWS_CHECK(talk(bytes, put_status(bytes, 0, 0), NULL, text, sizeof text, error, sizeof error) == 0 && text[0] == 0);
    HWS_CHECK(talk(bytes, put_status(bytes, 32, 32), NULL, text, sizeof text, error, sizeof error) == -1);
    HWS_CHECK(talk(bytes, put_status(bytes, 96, 96), NULL, text, sizeof text, error, sizeof error) == -1);
    HWS_CHECK(talk(bytes, put_status(bytes, 8, 31), NULL, text, sizeof text, error, sizeof error) == -1);
    HWS_CHECK(talk(bytes, put_status(bytes, 8, UINT32_MAX), NULL, text, sizeof text, error, sizeof error) == -1);
    size_t count = put_status(bytes, 31, 31);
    for (size_t cut = 0; cut < count; cut++) {
        HWS_CHECK(talk(bytes, cut, NULL, text, sizeof text, error, sizeof error) != 0 && error[0] != '\0');
    }
    welcome_t welcome = good_welcome();
    HWS_CHECK(talk(bytes, put_dialogue(bytes, &welcome), NULL, text, sizeof text, error, sizeof error) == -1);
}

/* A dialogue with an ANSWER: its end and its reason, whose lengths it states. */
static size_t put_answer(uint8_t *bytes, uint32_t end_bytes, uint32_t stated, const char *reason) {
    welcome_t welcome = good_welcome();
    uint8_t payload[256] = {0};
    uint32_t lengths[2] = {stated, (uint32_t) strlen(reason)};
    size_t used = put_dialogue(bytes, &welcome), at = HWS_ANSWER_FIXED_BYTES;
    memcpy(payload, lengths, sizeof lengths);
    memset(payload + at, 0x33, end_bytes);
    at += end_bytes;
    memcpy(payload + at, reason, strlen(reason));
    at += hws_pad8(strlen(reason));
    return used + put_record(bytes + used, HWS_CONTROL_ANSWER, payload, (uint32_t) at);
}

static void shouldOfferRdmaAndTakeTheAnswer(void) {
    uint8_t bytes[1024], end[HWS_RDMA_END_BYTES];
    char error[256];
    hws_welcome_t welcome;
    memset(end, 0x77, sizeof end);
    offer = end;
    HWS_CHECK(shake(bytes, put_answer(bytes, 64, 64, ""), &welcome, error, sizeof error) == 0);
    HWS_CHECK(answered.accepted && answered.end[0] == 0x33 && answered.end[63] == 0x33 && welcome.session_id == 77);
    HWS_CHECK(last.guest_opcode == HWS_CONTROL_OPEN && last.guest_records == 1);
    HWS_CHECK(memcmp(last.guest_offer, end, sizeof end) == 0);
    HWS_CHECK(shake(bytes, put_answer(bytes, 0, 0, "not allowed"), &welcome, error, sizeof error) == 0);
    HWS_CHECK(!answered.accepted && strcmp(answered.reason, "not allowed") == 0);
    /* Lengths that do not fit. */
    HWS_CHECK(shake(bytes, put_answer(bytes, 64, 0, ""), &welcome, error, sizeof error) == -1);
    HWS_CHECK(shake(bytes, put_answer(bytes, 0, 64, ""), &welcome, error, sizeof error) == -1);
    HWS_CHECK(shake(bytes, put_answer(bytes, 32, 32, ""), &welcome, error, sizeof error) == -1);
    HWS_CHECK(shake(bytes, put_answer(bytes, 128, 128, ""), &welcome, error, sizeof error) == -1);
    HWS_CHECK(shake(bytes, put_answer(bytes, 64, UINT32_MAX, "x"), &welcome, error, sizeof error) == -1);
    size_t count = put_answer(bytes, 64, 64, "");
    for (size_t cut = 0; cut < count; cut++) {
        HWS_CHECK(shake(bytes, cut, &welcome, error, sizeof error) != 0 && error[0] != '\0');
    }
    welcome_t sent = good_welcome();
    HWS_CHECK(shake(bytes, put_dialogue(bytes, &sent), &welcome, error, sizeof error) == -1);
    offer = NULL;
}

static void shouldAcceptAWelcome(void) {
    uint8_t bytes[512];
    char error[256];
    hws_welcome_t welcome;
    welcome_t sent = good_welcome();
    HWS_CHECK(shake(bytes, put_dialogue(bytes, &sent), &welcome, error, sizeof error) == 0);
    HWS_CHECK(welcome.device_count == 2 && welcome.session_id == 77 && welcome.next_sequence == 3);
}

static void shouldRefuseADialogueThatEndsAtAnyByte(void) {
    uint8_t bytes[512];
    char error[256];
    hws_welcome_t welcome;
    welcome_t sent = good_welcome();
    size_t count = put_dialogue(bytes, &sent);
    for (size_t cut = 0; cut < count; cut++) {
        HWS_CHECK(shake(bytes, cut, &welcome, error, sizeof error) == HWS_HANDSHAKE_CLOSED && error[0] != '\0');
    }
}

static void refuse(const welcome_t *sent) {
    uint8_t bytes[512];
    char error[256];
    hws_welcome_t welcome;
    HWS_CHECK(shake(bytes, put_dialogue(bytes, sent), &welcome, error, sizeof error) == -1);
}

static void shouldRefuseLimitsThatMakeNoSense(void) {
    welcome_t sent = good_welcome();
    sent.version = 2;
    refuse(&sent);
    sent = good_welcome();
    sent.devices = 0;
    refuse(&sent);
    sent.devices = HWS_MAX_DEVICES + 1;
    refuse(&sent);
    sent = good_welcome();
    sent.window = 1000;
    refuse(&sent);
    sent = good_welcome();
    sent.record = UINT32_MAX;
    refuse(&sent);
    sent = good_welcome();
    sent.bulk = UINT32_MAX;
    refuse(&sent);
    sent.bulk = 4097;
    refuse(&sent);
}

static void shouldShowWhatTheBrokerSaysWhenItRefuses(void) {
    uint8_t bytes[512];
    char error[256];
    hws_welcome_t welcome;
    struct {
        uint32_t code, length;
        char text[16];
    } refused = {3, 11, "no capacity"};
    size_t count = put_record(bytes, HWS_CONTROL_REFUSED, &refused, sizeof refused);
    HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == -1 && strstr(error, "no capacity") != NULL);
    refused.length = UINT32_MAX;
    count = put_record(bytes, HWS_CONTROL_REFUSED, &refused, sizeof refused);
    HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == -1);
    HWS_CHECK(shake((const uint8_t *) "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", 47, &welcome, error,
                    sizeof error)
              == -1);
}

static void shouldProveTheTokenForTheWholeHello(void) {
    uint8_t bytes[512], proof[HWS_PROOF_BYTES], nonce[HWS_NONCE_SERVER_BYTES] = {9};
    char error[256], text[32];
    hws_welcome_t welcome;
    welcome_t sent = good_welcome();
    hws_token_keys_t keys;
    hws_token_keys_derive(config.secret, &keys);
    HWS_CHECK(shake(bytes, put_dialogue(bytes, &sent), &welcome, error, sizeof error) == 0);
    hws_transcript_t transcript = {nonce, last.hello, last.hello_bytes};
    hws_handshake_proof_of_guest(&keys, HWS_PURPOSE_SESSION, &transcript, proof);
    HWS_CHECK(last.guest_records == 1 && last.guest_opcode == HWS_CONTROL_PROOF);
    HWS_CHECK(memcmp(proof, last.guest_proof, sizeof proof) == 0);
    uint32_t version;
    memcpy(&version, last.hello, sizeof version);
    HWS_CHECK(version == HWS_HANDSHAKE_VERSION && memcmp(last.hello + HWS_HELLO_FIXED_BYTES, "key", 3) == 0);
    HWS_CHECK(talk(bytes, put_status(bytes, 8, 8), NULL, text, sizeof text, error, sizeof error) == 0);
    transcript.hello_bytes = last.hello_bytes;
    hws_handshake_proof_of_guest(&keys, HWS_PURPOSE_STATUS, &transcript, proof);
    HWS_CHECK(last.guest_opcode == HWS_CONTROL_ASK_STATUS && memcmp(proof, last.guest_proof, sizeof proof) == 0);
}

static void shouldKnowWhetherTheWorkerMaySendTheSessionAway(void) {
    const uint32_t flags[] = {0, HWS_FLAG_MAY_LEAVE, UINT32_MAX, ~(uint32_t) HWS_FLAG_MAY_LEAVE};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        uint8_t bytes[512];
        char error[256];
        hws_welcome_t welcome;
        welcome_t sent = good_welcome();
        const size_t count = put_dialogue(bytes, &sent), before = count - sizeof sent - HWS_HEADER_BYTES;
        memcpy(bytes + before + offsetof(hws_record_header_t, flags), &flags[i], sizeof flags[i]);
        HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == 0);
        HWS_CHECK(welcome.may_leave == (i == 1 || i == 2));
    }
}

static void shouldNotBeTalkedDownToTheOldProof(void) {
    uint8_t bytes[512], nonce[HWS_NONCE_SERVER_BYTES] = {9};
    char error[256], text[32];
    hws_welcome_t welcome;
    welcome_t sent = good_welcome();
    size_t count = put_record(bytes, HWS_CONTROL_OLD_CHALLENGE, nonce, sizeof nonce);
    count += put_record(bytes + count, HWS_CONTROL_WELCOME, &sent, sizeof sent);
    HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == -1 && strstr(error, "version 2") != NULL);
    HWS_CHECK(last.guest_records == 0);
    HWS_CHECK(talk(bytes, count, NULL, text, sizeof text, error, sizeof error) == -1 && last.guest_records == 0);
}

static void shouldShowWhatABrokerOfAnOlderVersionAnswers(void) {
    uint8_t bytes[512];
    char error[256];
    hws_welcome_t welcome;
    struct {
        uint32_t code, length;
        char text[72];
    } refused = {2, 65,
                 "guest and broker must speak the same protocol: "
                 "guest=2 broker=1  "};
    size_t count = put_record(bytes, HWS_CONTROL_REFUSED, &refused, sizeof refused);
    HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == -1 && strstr(error, "guest=2 broker=1") != NULL);
    HWS_CHECK(last.guest_records == 0);
}

static void shouldTakeNothingFromABrokerThatHasNotProvedTheToken(void) {
    uint8_t bytes[512];
    char error[256], text[32];
    hws_welcome_t welcome, untouched;
    welcome_t sent = good_welcome();
    memset(&untouched, 0x5a, sizeof untouched);
    proof_kind_t wrong[] = {PROOF_OF_ANOTHER_TOKEN, PROOF_OF_ANOTHER_HELLO};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kind_of_proof = wrong[i];
        HWS_CHECK(shake(bytes, put_dialogue(bytes, &sent), &welcome, error, sizeof error) == -1);
        HWS_CHECK(strstr(error, "must prove that it has the token") != NULL);
        HWS_CHECK(memcmp(&welcome, &untouched, sizeof welcome) == 0);
        HWS_CHECK(talk(bytes, put_status(bytes, 8, 8), NULL, text, sizeof text, error, sizeof error) == -1);
        HWS_CHECK(strstr(error, "must prove that it has the token") != NULL && text[0] == 0x5a);
        struct {
            uint32_t code, length;
            char text[16];
        } refused = {1, 13, "not the token"};
        size_t count = put_challenge(bytes);
        count += put_record(bytes + count, HWS_CONTROL_REFUSED, &refused, sizeof refused);
        HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == -1 && strstr(error, "not the token") != NULL);
    }
    kind_of_proof = PROOF_OF_BROKER;
}

/* A challenge, and REFUSED with MOVED and this address. */
static size_t put_moved(uint8_t *bytes, const char *address, uint32_t length) {
    uint8_t payload[512] = {0};
    uint32_t words[2] = {HWS_REFUSED_MOVED, length};
    size_t used = put_challenge(bytes);
    memcpy(payload, words, sizeof words);
    memcpy(payload + HWS_REFUSED_FIXED_BYTES, address, length);
    return used
        + put_record(bytes + used, HWS_CONTROL_REFUSED, payload, HWS_REFUSED_FIXED_BYTES + (uint32_t) hws_pad8(length));
}

static void shouldReportWhereTheVgpuIs(void) {
    uint8_t bytes[1024], end[HWS_RDMA_END_BYTES] = {1};
    char error[256], text[32], address[HWS_MAX_ADDRESS_BYTES + 2];
    hws_welcome_t welcome;
    size_t count = put_moved(bytes, "gpu2.example:7654", 17);
    HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == HWS_HANDSHAKE_MOVED);
    HWS_CHECK(strcmp(error, "gpu2.example:7654") == 0 && last.guest_opcode == HWS_CONTROL_PROOF);
    HWS_CHECK(talk(bytes, count, NULL, text, sizeof text, error, sizeof error) == HWS_HANDSHAKE_MOVED);
    HWS_CHECK(strcmp(error, "gpu2.example:7654") == 0 && last.guest_opcode == HWS_CONTROL_ASK_STATUS);
    offer = end;
    HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == HWS_HANDSHAKE_MOVED);
    HWS_CHECK(strcmp(error, "gpu2.example:7654") == 0 && last.guest_opcode == HWS_CONTROL_OPEN);
    offer = NULL;
    memset(address, 'a', sizeof address);
    HWS_CHECK(shake(bytes, put_moved(bytes, address, 255), &welcome, error, sizeof error) == HWS_HANDSHAKE_MOVED);
    HWS_CHECK(strlen(error) == 255);
    HWS_CHECK(shake(bytes, put_moved(bytes, address, 256), &welcome, error, sizeof error) == -1);
    HWS_CHECK(strstr(error, "an address that is not one (256 bytes)") != NULL);
    HWS_CHECK(shake(bytes, put_moved(bytes, "", 0), &welcome, error, sizeof error) == -1);
    HWS_CHECK(shake(bytes, put_moved(bytes, "a:1\0b", 5), &welcome, error, sizeof error) == -1);
    /* The caller's buffer bounds it as well. */
    HWS_CHECK(shake(bytes, put_moved(bytes, address, 255), &welcome, error, 255) == -1);
}

static void shouldGoNowhereForABrokerThatHasNotProvedTheToken(void) {
    uint8_t bytes[512];
    char error[256], text[32];
    hws_welcome_t welcome;
    kind_of_proof = PROOF_OF_ANOTHER_TOKEN;
    size_t count = put_moved(bytes, "evil.example:1", 14);
    HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == -1);
    HWS_CHECK(strstr(error, "must prove that it has the token") != NULL);
    HWS_CHECK(talk(bytes, count, NULL, text, sizeof text, error, sizeof error) == -1);
    HWS_CHECK(strstr(error, "must prove that it has the token") != NULL);
    kind_of_proof = PROOF_OF_BROKER;
    /* Nor before there is a challenge. */
    const size_t before = put_challenge(bytes);
    HWS_CHECK(shake(bytes + before, count - before, &welcome, error, sizeof error) == -1);
    HWS_CHECK(talk(bytes + before, count - before, NULL, text, sizeof text, error, sizeof error) == -1);
    HWS_CHECK(strstr(error, "must prove that it has the token") != NULL);
}

static void shouldStayWhereTheSessionHasBegun(void) {
    uint8_t bytes[1024], moved[256], end[HWS_RDMA_END_BYTES] = {1};
    char error[256];
    hws_welcome_t welcome;
    welcome_t sent = good_welcome();
    size_t count = put_dialogue(bytes, &sent), before = put_challenge(moved);
    const size_t more = put_moved(moved, "gpu2.example:7654", 17) - before;
    memcpy(bytes + count, moved + before, more);
    offer = end;
    HWS_CHECK(shake(bytes, count + more, &welcome, error, sizeof error) == -1);
    HWS_CHECK(strstr(error, "has begun here") != NULL);
    offer = NULL;
}

static int load(const char *broker, const char *token, hws_config_t *config_p) {
    char error[512] = "";
    setenv("HAWSER_BROKER", broker, 1);
    setenv("HAWSER_TOKEN", token, 1);
    int rc = hws_config_load(config_p, error, sizeof error);
    HWS_CHECK((rc == 0) == (error[0] == '\0'));
    return rc;
}

static void shouldTakeTheConfigurationFromTheEnvironment(void) {
    hws_config_t loaded;
    HWS_CHECK(load("gpu.example:99", "id.s3cret_-", &loaded) == 0);
    HWS_CHECK(strcmp(loaded.brokers[0].host, "gpu.example") == 0 && strcmp(loaded.brokers[0].port, "99") == 0);
    HWS_CHECK(strcmp(loaded.key_id, "id") == 0 && strcmp(loaded.secret, "s3cret_-") == 0);
    HWS_CHECK(load("[::1]:5", "a.b", &loaded) == 0 && strcmp(loaded.brokers[0].host, "::1") == 0);
    HWS_CHECK(load("host", "a.b", &loaded) == 0 && strcmp(loaded.brokers[0].port, HWS_DEFAULT_PORT) == 0);
    const char *bad_brokers[] = {"", "host:", "host:0", "host:65536", "host:x", ":7", "a:1:2", "[::1", "[::1]x"};
    for (size_t i = 0; i < sizeof bad_brokers / sizeof *bad_brokers; i++) {
        HWS_CHECK(load(bad_brokers[i], "a.b", &loaded) == -1);
    }
    const char *bad_tokens[] = {"", "a", ".", "a.", ".b", "a.b.c", "a b.c", "a.b/c"};
    for (size_t i = 0; i < sizeof bad_tokens / sizeof *bad_tokens; i++) {
        HWS_CHECK(load("host:1", bad_tokens[i], &loaded) == -1);
    }
}

static void shouldFillInFromTheFile(void) {
    char path[] = "/tmp/hawser-test-XXXXXX", error[512];
    int fd = mkstemp(path);
    HWS_CHECK(fd >= 0);
    static const char text[] = "# a comment\n[other]\nbroker = \"wrong:1\"\n[guest]\n"
                               "broker = \"right:2\"\ntoken = 'k.s'\nnew = 'x'\n";
    HWS_CHECK(write(fd, text, sizeof text - 1) == sizeof text - 1);
    close(fd);
    setenv("HAWSER_CONFIG", path, 1);
    unsetenv("HAWSER_BROKER");
    unsetenv("HAWSER_TOKEN");
    hws_config_t loaded;
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == 0);
    HWS_CHECK(strcmp(loaded.brokers[0].host, "right") == 0 && strcmp(loaded.brokers[0].port, "2") == 0
              && strcmp(loaded.key_id, "k") == 0);
    setenv("HAWSER_BROKER", "mine:3", 1);
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == 0 && strcmp(loaded.brokers[0].host, "mine") == 0);
    unlink(path);
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == -1 && strstr(error, path) != NULL);
}

static void shouldDoWithoutABrokerUnlessOnlyTcpWillDo(void) {
    hws_config_t loaded;
    char error[512] = "";
    setenv("HAWSER_CONFIG", "/dev/null", 1);
    setenv("HAWSER_CARRIER", "auto", 1);
    setenv("HAWSER_REGION", "/dev/shm/x", 1);
    unsetenv("HAWSER_BROKER");
    unsetenv("HAWSER_TOKEN");
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == 0 && loaded.carrier == HWS_CARRIER_AUTO);
    HWS_CHECK(strcmp(loaded.region, "/dev/shm/x") == 0 && strcmp(loaded.sysfs, "/sys") == 0);
    HWS_CHECK(loaded.brokers[0].host[0] == '\0' && strstr(loaded.missing, "HAWSER_BROKER") != NULL);
    setenv("HAWSER_BROKER", "host", 1);
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == 0 && strstr(loaded.missing, "HAWSER_TOKEN") != NULL);
    setenv("HAWSER_TOKEN", "a.b", 1);
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == 0 && loaded.missing[0] == '\0');
    setenv("HAWSER_TOKEN", "a", 1);
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == -1);
    setenv("HAWSER_TOKEN", "a.b", 1);
    setenv("HAWSER_CARRIER", "pigeon", 1);
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == -1 && strstr(error, "pigeon") != NULL);
    setenv("HAWSER_CARRIER", "shm", 1);
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == 0 && loaded.carrier == HWS_CARRIER_SHM);
}

int main(void) {
    setenv("HAWSER_CONFIG", "/dev/null", 1);
    setenv("HAWSER_CARRIER", "tcp", 1);
    HWS_RUN(shouldAcceptAWelcome);
    HWS_RUN(shouldOfferRdmaAndTakeTheAnswer);
    HWS_RUN(shouldRefuseADialogueThatEndsAtAnyByte);
    HWS_RUN(shouldRefuseLimitsThatMakeNoSense);
    HWS_RUN(shouldShowWhatTheBrokerSaysWhenItRefuses);
    HWS_RUN(shouldTakeAStatusThatFits);
    HWS_RUN(shouldProveTheTokenForTheWholeHello);
    HWS_RUN(shouldKnowWhetherTheWorkerMaySendTheSessionAway);
    HWS_RUN(shouldNotBeTalkedDownToTheOldProof);
    HWS_RUN(shouldShowWhatABrokerOfAnOlderVersionAnswers);
    HWS_RUN(shouldTakeNothingFromABrokerThatHasNotProvedTheToken);
    HWS_RUN(shouldReportWhereTheVgpuIs);
    HWS_RUN(shouldGoNowhereForABrokerThatHasNotProvedTheToken);
    HWS_RUN(shouldStayWhereTheSessionHasBegun);
    HWS_RUN(shouldTakeTheConfigurationFromTheEnvironment);
    HWS_RUN(shouldFillInFromTheFile);
    HWS_RUN(shouldDoWithoutABrokerUnlessOnlyTcpWillDo);
    return 0;
}
