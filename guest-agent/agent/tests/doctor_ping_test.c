/* hawser doctor: the line about a broker's answer over RDMA, on the device of libibverbs for tests. */
#include "tests/fake_rdma.h"
#include "tests/hws_test.h"

#include "doctor_report.h"

#include "hws_handshake_proof.h"
#include "hws_record.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>

#define ROUNDS 16 /* of a ping, before its long packets */

/* How the broker behaves, in the order of a session's beginning. */
typedef enum mood {
    REFUSES,         /* the session */
    MOVES,           /* the guest to its own address; answers there, with another end */
    ALLOWS_NO_RDMA,  /* the session begins, and stays on its connection */
    ANSWERS_NOTHING, /* the worker takes records and sends none */
    ANSWERS_ANOTHER, /* the worker's replies belong to another call */
    GOES,            /* the worker's end is gone before the first call */
    GOES_LATE,       /* the same when the long packets come */
    ANSWERS
} mood_t;

typedef struct broker {
    mood_t mood;
    int listener;
    unsigned answered; /* calls */
    bool left;         /* the guest's end has left in order */
} broker_t;

static hws_config_t config;

static void receive(int fd, void *target, size_t bytes) {
    HWS_CHECK(recv(fd, target, bytes, MSG_WAITALL) == (ssize_t) bytes);
}

static void put(int fd, uint32_t opcode, const void *payload, size_t bytes) {
    const hws_record_header_t header = {.length_bytes = (int32_t) (HWS_HEADER_BYTES + bytes), .opcode = opcode};
    HWS_CHECK(send(fd, &header, sizeof header, MSG_NOSIGNAL) == (ssize_t) sizeof header);
    HWS_CHECK(send(fd, payload, bytes, MSG_NOSIGNAL) == (ssize_t) bytes);
}

/* Takes HELLO, proves itself, and takes the guest's offer. */
static void admit(int fd, uint8_t offer_p[HWS_RDMA_END_BYTES]) {
    hws_record_header_t header;
    uint8_t hello[1024], challenge[HWS_CHALLENGE_FIXED_BYTES] = {9}, open[HWS_OPEN_FIXED_BYTES + HWS_RDMA_END_BYTES];
    receive(fd, &header, sizeof header);
    size_t bytes = (size_t) header.length_bytes - sizeof header;
    HWS_CHECK(header.opcode == HWS_CONTROL_HELLO && bytes <= sizeof hello);
    receive(fd, hello, bytes);
    hws_token_keys_t keys;
    hws_token_keys_derive(config.secret, &keys);
    const hws_bytes_t pieces[3] = {{"hawser-server-2", 15}, {challenge, HWS_NONCE_SERVER_BYTES}, {hello, bytes}};
    hws_hmac_sha256(keys.server_key, sizeof keys.server_key, pieces, 3, challenge + HWS_CHALLENGE_SERVER_PROOF_OFFSET);
    put(fd, HWS_CONTROL_CHALLENGE, challenge, sizeof challenge);
    receive(fd, &header, sizeof header);
    HWS_CHECK(header.opcode == HWS_CONTROL_OPEN && header.length_bytes == HWS_HEADER_BYTES + sizeof open);
    receive(fd, open, sizeof open);
    memcpy(offer_p, open + HWS_OPEN_FIXED_BYTES, HWS_RDMA_END_BYTES);
}

/* Sends WELCOME, and ANSWER with an end or a reason. */
static void welcome(int fd, const uint8_t *end, const char *reason) {
    struct {
        uint32_t version, devices;
        uint64_t session, window;
        uint32_t record, bulk;
        uint64_t hash;
    } greeting = {HWS_PROTOCOL_VERSION, 1, 7, HWS_CREDIT_WINDOW_BYTES, HWS_MAX_RECORD_BYTES, HWS_MAX_BULK_BYTES, 0};
    struct {
        uint32_t end_bytes, reason_bytes;
        char data[HWS_RDMA_END_BYTES];
    } answer = {end == NULL ? 0 : HWS_RDMA_END_BYTES, (uint32_t) strlen(reason), ""};
    memcpy(answer.data, end == NULL ? (const void *) reason : end, answer.end_bytes + answer.reason_bytes);
    put(fd, HWS_CONTROL_WELCOME, &greeting, sizeof greeting);
    put(fd, HWS_CONTROL_ANSWER, &answer,
        HWS_ANSWER_FIXED_BYTES + answer.end_bytes + (size_t) hws_pad8(answer.reason_bytes));
}

/* Answers calls until the guest has left, or has gone without that. */
static void serve(broker_t *broker, fake_end_t *end, int fd) {
    uint8_t byte;
    struct {
        hws_record_header_t header;
        uint64_t device;
    } call;
    const uint8_t info[960] = {1};
    const uint32_t *left = &hws_rdma_words(end->rdma)->peer_left;
    while (broker->mood != GOES_LATE || broker->answered < ROUNDS) {
        while (hws_ring_available(&end->command) == 0) {
            /* A guest leaves, and then closes: all that it has sent is there when the socket is closed. */
            bool is_closed = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
            hws_rdma_progress(end->rdma);
            broker->left = __atomic_load_n(left, __ATOMIC_ACQUIRE) != 0;
            if (broker->left || is_closed || !fake_rdma_await(end)) {
                return;
            }
        }
        if (!fake_rdma_read(end, &call, sizeof call)) {
            return;
        }
        HWS_CHECK(call.header.flags == HWS_FLAG_REPLY && call.header.length_bytes == sizeof call && call.device == 0);
        HWS_CHECK(call.header.sequence == 3 + broker->answered);
        if (broker->mood != ANSWERS_NOTHING) {
            call.header.opcode |= HWS_REPLY_BIT;
            call.header.sequence += broker->mood == ANSWERS_ANOTHER;
            call.header.flags = 0;
            call.header.length_bytes = (int32_t) (HWS_HEADER_BYTES + sizeof info);
            fake_rdma_write(end, &call.header, sizeof call.header);
            fake_rdma_write(end, info, sizeof info);
            broker->answered++;
        }
    }
}

static void *broker_main(void *argument) {
    broker_t *broker = argument;
    uint8_t offer[HWS_RDMA_END_BYTES], own[HWS_RDMA_END_BYTES];
    char error[512], byte;
    static const char full[] = "the vGPU's sessions are all in use";
    struct {
        uint32_t code, bytes;
        char text[40];
    } refused = {HWS_REFUSED_NO_CAPACITY, sizeof full - 1, ""};
    int fd = accept(broker->listener, NULL, NULL);
    if (fd < 0) {
        return NULL; /* nobody has come */
    }
    admit(fd, offer);
    if (broker->mood == MOVES) {
        uint8_t first[HWS_RDMA_END_BYTES];
        memcpy(first, offer, sizeof first);
        refused.code = HWS_REFUSED_MOVED;
        refused.bytes = (uint32_t) snprintf(refused.text, sizeof refused.text, "127.0.0.1:%s", config.brokers[0].port);
        put(fd, HWS_CONTROL_REFUSED, &refused, sizeof refused);
        HWS_CHECK(recv(fd, &byte, 1, 0) == 0);
        close(fd);
        fd = accept(broker->listener, NULL, NULL);
        admit(fd, offer);
        /* Another end: the broker before knows the first one. */
        HWS_CHECK(fd >= 0 && memcmp(first, offer, sizeof first) != 0);
    }
    if (broker->mood == REFUSES) {
        memcpy(refused.text, full, sizeof full);
        put(fd, HWS_CONTROL_REFUSED, &refused, sizeof refused);
    } else if (broker->mood == ALLOWS_NO_RDMA) {
        welcome(fd, NULL, "the vGPU does not allow RDMA");
    } else {
        fake_end_t end;
        fake_rdma_attach(&end, fake_rdma_open(true, 0, own));
        HWS_CHECK(hws_rdma_connect(end.rdma, offer, error, sizeof error) == 0);
        if (broker->mood == GOES) {
            hws_rdma_close(end.rdma);
        }
        welcome(fd, own, "");
        if (broker->mood != GOES) {
            serve(broker, &end, fd);
            hws_rdma_leave(end.rdma, 1000); /* the guest has all answers */
            hws_rdma_close(end.rdma);
        }
    }
    HWS_CHECK(recv(fd, &byte, 1, 0) == 0); /* the guest ends the connection, and sends nothing on it */
    close(fd);
    return NULL;
}

static void listen_somewhere(broker_t *broker) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    broker->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HWS_CHECK(bind(broker->listener, (struct sockaddr *) &address, sizeof address) == 0);
    HWS_CHECK(listen(broker->listener, 1) == 0);
    HWS_CHECK(getsockname(broker->listener, (struct sockaddr *) &address, &bytes) == 0);
    snprintf(config.brokers[0].port, sizeof config.brokers[0].port, "%u", ntohs(address.sin_port));
}

/* Pings a broker of this mood. Its one line must begin and go on so. Returns what the broker has seen. */
static broker_t expect(mood_t mood, hws_carrier_choice_t carrier, const char *level, const char *text) {
    broker_t broker = {.mood = mood};
    pthread_t thread;
    listen_somewhere(&broker);
    HWS_CHECK(pthread_create(&thread, NULL, broker_main, &broker) == 0);
    config.carrier = carrier;
    report[0] = '\0';
    hws_doctor_ping_rdma(&config, true);
    shutdown(broker.listener, SHUT_RDWR);
    HWS_CHECK(pthread_join(thread, NULL) == 0);
    close(broker.listener);
    if (strncmp(report, level, strlen(level)) != 0 || strstr(report, text) == NULL
        || strchr(report, '\n') != report + strlen(report) - 1 || strstr(report, config.secret) != NULL) {
        fprintf(stderr, "expected one line \"%s ... %s\", not:\n%s", level, text, report);
        exit(1);
    }
    return broker;
}

static void should_say_how_fast_the_broker_answers(void) {
    broker_t seen = expect(ANSWERS, HWS_CARRIER_AUTO,
                           "ok RDMA: the broker at 127.0.0.1:", " answers over hawser_test0 port 1, GID ");
    HWS_CHECK(strstr(report, " us\n") != NULL && seen.left && seen.answered == ROUNDS + 1);
}

static void should_ask_the_broker_that_holds_the_vgpu(void) {
    broker_t seen =
        expect(MOVES, HWS_CARRIER_RDMA, "ok RDMA: the broker at 127.0.0.1:", " answers over hawser_test0 port 1, GID ");
    HWS_CHECK(seen.left && seen.answered == ROUNDS + 1);
}

static void should_say_why_there_is_no_session(void) {
    expect(REFUSES, HWS_CARRIER_RDMA, "FAIL RDMA: no session", "the vGPU's sessions are all in use");
    expect(REFUSES, HWS_CARRIER_AUTO, "note RDMA: no session", "the vGPU's sessions are all in use");
    expect(ALLOWS_NO_RDMA, HWS_CARRIER_RDMA, "FAIL RDMA: no session", "the vGPU does not allow RDMA");
    expect(ALLOWS_NO_RDMA, HWS_CARRIER_AUTO, "note RDMA: no session", "the vGPU does not allow RDMA");
}

/* With any carrier: a program's session would begin over RDMA and be lost. */
static void should_say_that_the_fabric_carries_nothing(void) {
    expect(GOES, HWS_CARRIER_AUTO, "FAIL RDMA: the broker at 127.0.0.1:", "no firewall may stop UDP port 4791");
    HWS_CHECK(strstr(report, "does not answer over hawser_test0") != NULL);
    HWS_CHECK(strstr(report, "transport retry counter exceeded") != NULL);
}

static void should_wait_no_longer_than_the_limit(void) {
    config.connect_timeout_ms = 300;
    expect(ANSWERS_NOTHING, HWS_CARRIER_AUTO, "FAIL RDMA: the broker at ", "did not answer in time (300 ms)");
    config.connect_timeout_ms = 20000;
}

/* The worker's end may have taken the packets before it went: then only the answer is missing. */
static void should_name_the_mtu_when_only_long_packets_are_lost(void) {
    config.connect_timeout_ms = 300;
    expect(GOES_LATE, HWS_CARRIER_AUTO, "FAIL RDMA: the broker at ", "need the same MTU");
    config.connect_timeout_ms = 20000;
}

static void should_refuse_the_answer_to_another_call(void) {
    expect(ANSWERS_ANOTHER, HWS_CARRIER_AUTO, "FAIL RDMA: the broker at ", "the worker's answer is invalid");
}

/* It does not repeat what hws_doctor_check_rdma() has said. */
static void should_say_why_this_end_cannot_be_made(void) {
    snprintf(config.rdma_device, sizeof config.rdma_device, "none_0");
    report[0] = '\0';
    config.carrier = HWS_CARRIER_RDMA;
    hws_doctor_ping_rdma(&config, false);
    HWS_CHECK(report[0] == '\0');
    hws_doctor_ping_rdma(&config, true);
    HWS_CHECK(strcmp(report, "FAIL RDMA: there is no RDMA device none_0\n") == 0);
    config.rdma_device[0] = '\0';
}

int main(void) {
    config = (hws_config_t) {.brokers = {{"127.0.0.1", ""}},
                             .broker_count = 1,
                             .key_id = "key",
                             .secret = "of-the-token",
                             .connect_timeout_ms = 20000,
                             .rdma = {.gid_index = -1, .retry_ms = 200}};
    HWS_RUN(should_say_how_fast_the_broker_answers);
    HWS_RUN(should_ask_the_broker_that_holds_the_vgpu);
    HWS_RUN(should_say_why_there_is_no_session);
    HWS_RUN(should_say_that_the_fabric_carries_nothing);
    HWS_RUN(should_wait_no_longer_than_the_limit);
    HWS_RUN(should_name_the_mtu_when_only_long_packets_are_lost);
    HWS_RUN(should_refuse_the_answer_to_another_call);
    HWS_RUN(should_say_why_this_end_cannot_be_made);
    return 0;
}
