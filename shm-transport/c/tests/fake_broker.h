/*
 * Brokers of a pool, in threads of this process: they do the handshake with guests that resume a session or join it by a
 * stripe, and give the test the connections.
 */
#ifndef FAKE_BROKER_H
#define FAKE_BROKER_H

#include "../hws_config.h"
#include "../hws_handshake_proof.h"
#include "../hws_record.h"
#include "hws_test.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FAKE_SESSION 4711u
#define FAKE_NONCE "0123456789abcde"
#define FAKE_SECRET "secret"
#define FAKE_CONNECTIONS 64

/* How a broker answers RESUME. */
typedef enum fake_manner {
    FAKE_PARKS,
    FAKE_REFUSES,        /* with the text in `text` */
    FAKE_SENDS_ON,       /* MOVED, to the text */
    FAKE_KNOWS_NO_KEY,   /* its proof is wrong */
    FAKE_ANSWERS_JOINED, /* with any text: RESUMED */
    FAKE_IS_SILENT,      /* from HELLO on */
    FAKE_CLOSES
} fake_manner_t;

typedef struct fake_broker {
    fake_manner_t manner;
    const char *text;
    hws_address_t address;
    char name[300]; /* host:port */
    int listener;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int parked[FAKE_CONNECTIONS], joined[FAKE_CONNECTIONS]; /* descriptors */
    unsigned parked_count, joined_count, arrived;
} fake_broker_t;

static bool fake_receive(int fd, void *target, size_t bytes) {
    return bytes == 0 || recv(fd, target, bytes, MSG_WAITALL) == (ssize_t) bytes;
}

static void fake_answer(int fd, uint32_t opcode, const void *payload, size_t bytes) {
    uint8_t record[1024] = {0};
    const size_t whole = sizeof(hws_record_header_t) + (size_t) hws_pad8(bytes);
    const hws_record_header_t header = {.length_bytes = (int32_t) whole, .opcode = opcode};
    HWS_CHECK(whole <= sizeof record);
    memcpy(record, &header, sizeof header);
    memcpy(record + sizeof header, payload, bytes);
    HWS_CHECK(send(fd, record, whole, MSG_NOSIGNAL) == (ssize_t) whole);
}

static void fake_put_refused(int fd, uint32_t code, const char *text) {
    uint8_t payload[512] = {0};
    const uint32_t words[2] = {code, (uint32_t) strlen(text)};
    memcpy(payload, words, sizeof words);
    memcpy(payload + sizeof words, text, words[1]);
    fake_answer(fd, HWS_CONTROL_REFUSED, payload, sizeof words + words[1]);
}

/* Takes HELLO, sends CHALLENGE, and takes and checks RESUME or JOIN. Returns its opcode; 0 when the guest has gone. */
static uint32_t fake_challenge(int fd, bool knows_key) {
    hws_record_header_t header;
    uint8_t hello[1024], challenge[HWS_CHALLENGE_FIXED_BYTES] = {9}, given[HWS_RESUME_FIXED_BYTES];
    uint8_t proof[HWS_PROOF_BYTES];
    uint64_t session;
    if (!fake_receive(fd, &header, sizeof header)) {
        return 0;
    }
    const size_t bytes = (size_t) header.length_bytes - sizeof header;
    HWS_CHECK(header.opcode == HWS_CONTROL_HELLO && bytes <= sizeof hello && fake_receive(fd, hello, bytes));
    hws_token_keys_t keys;
    hws_token_keys_derive(knows_key ? FAKE_SECRET : "another", &keys);
    const hws_bytes_t pieces[3] = {{"hawser-server-2", 15}, {challenge, HWS_NONCE_SERVER_BYTES}, {hello, bytes}};
    hws_hmac_sha256(keys.server_key, sizeof keys.server_key, pieces, 3, challenge + HWS_CHALLENGE_SERVER_PROOF_OFFSET);
    fake_answer(fd, HWS_CONTROL_CHALLENGE, challenge, sizeof challenge);
    if (!fake_receive(fd, &header, sizeof header)) {
        return 0;
    }
    HWS_CHECK(knows_key); /* else the guest must not say for which session it has come */
    HWS_CHECK(header.length_bytes == HWS_HEADER_BYTES + sizeof given && fake_receive(fd, given, sizeof given));
    HWS_CHECK(header.opcode == HWS_CONTROL_RESUME || header.opcode == HWS_CONTROL_JOIN);
    const hws_transcript_t transcript = {challenge, hello, bytes};
    hws_token_keys_derive(FAKE_SECRET, &keys);
    hws_handshake_proof_of_guest(&keys, header.opcode == HWS_CONTROL_JOIN ? HWS_PURPOSE_JOIN : HWS_PURPOSE_RESUME,
                                 &transcript, proof);
    memcpy(&session, given + HWS_RESUME_SESSION_ID_OFFSET, sizeof session);
    HWS_CHECK(memcmp(given + HWS_RESUME_PROOF_OFFSET, proof, sizeof proof) == 0 && session == FAKE_SESSION);
    HWS_CHECK(memcmp(given + HWS_RESUME_SESSION_NONCE_OFFSET, FAKE_NONCE, HWS_NONCE_CLIENT_BYTES) == 0);
    return header.opcode;
}

/* Returns whether the connection stays open, with the test. */
static bool fake_greet(fake_broker_t *broker, int fd) {
    char byte;
    if (broker->manner == FAKE_IS_SILENT) {
        while (recv(fd, &byte, 1, 0) > 0) {
        }
        return false;
    }
    const uint32_t opcode = fake_challenge(fd, broker->manner != FAKE_KNOWS_NO_KEY);
    if (opcode == 0 || broker->manner == FAKE_CLOSES) {
        return false;
    }
    pthread_mutex_lock(&broker->lock);
    const uint32_t joined[2] = {HWS_FIRST_STRIPE_CHUNK + broker->joined_count % HWS_MAX_STRIPES * HWS_STRIPE_CHUNKS, 0};
    bool stays = true;
    if (opcode == HWS_CONTROL_JOIN) {
        fake_answer(fd, HWS_CONTROL_JOINED, joined, sizeof joined);
        HWS_CHECK(broker->joined_count < FAKE_CONNECTIONS);
        broker->joined[broker->joined_count++] = fd;
    } else if (broker->manner == FAKE_REFUSES || broker->manner == FAKE_SENDS_ON) {
        fake_put_refused(fd, broker->manner == FAKE_REFUSES ? HWS_REFUSED_PROTOCOL : HWS_REFUSED_MOVED, broker->text);
        stays = false;
    } else if (broker->manner == FAKE_ANSWERS_JOINED) {
        const bool bare = broker->text != NULL;
        fake_answer(fd, bare ? HWS_CONTROL_RESUMED : HWS_CONTROL_JOINED, joined, bare ? 0 : sizeof joined);
        stays = false;
    } else {
        HWS_CHECK(broker->parked_count < FAKE_CONNECTIONS);
        broker->parked[broker->parked_count++] = fd; /* the test knows it before the guest does */
        fake_answer(fd, HWS_CONTROL_PARKED, joined, 0);
    }
    pthread_cond_broadcast(&broker->changed);
    pthread_mutex_unlock(&broker->lock);
    while (!stays && recv(fd, &byte, 1, 0) > 0) { /* the guest closes first */
    }
    return stays;
}

static void *fake_broker_main(void *argument) {
    fake_broker_t *broker = argument;
    int fd;
    const int on = 1;
    while ((fd = accept(broker->listener, NULL, NULL)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fake_put() writes a record in pieces */
        pthread_mutex_lock(&broker->lock);
        broker->arrived++;
        pthread_cond_broadcast(&broker->changed);
        pthread_mutex_unlock(&broker->lock);
        if (!fake_greet(broker, fd)) {
            close(fd);
        }
    }
    return NULL;
}

/* Takes a port, which refuses connections. */
static void fake_broker_close_door(fake_broker_t *broker) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    *broker = (fake_broker_t) {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    broker->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HWS_CHECK(bind(broker->listener, (struct sockaddr *) &address, length) == 0);
    HWS_CHECK(getsockname(broker->listener, (struct sockaddr *) &address, &length) == 0);
    snprintf(broker->address.host, sizeof broker->address.host, "127.0.0.1");
    snprintf(broker->address.port, sizeof broker->address.port, "%u", ntohs(address.sin_port));
    snprintf(broker->name, sizeof broker->name, "%s:%s", broker->address.host, broker->address.port);
}

static void fake_broker_start(fake_broker_t *broker, fake_manner_t manner, const char *text) {
    fake_broker_close_door(broker);
    broker->manner = manner;
    broker->text = text;
    HWS_CHECK(listen(broker->listener, 16) == 0);
    HWS_CHECK(pthread_create(&broker->thread, NULL, fake_broker_main, broker) == 0);
}

static inline void fake_broker_stop(fake_broker_t *broker) {
    shutdown(broker->listener, SHUT_RDWR);
    HWS_CHECK(pthread_join(broker->thread, NULL) == 0);
    close(broker->listener);
}

/* Waits until a counter of the broker is at least this. */
static void fake_broker_await(fake_broker_t *broker, const unsigned *counter, unsigned wanted) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&broker->lock);
    while (*counter < wanted) {
        HWS_CHECK(pthread_cond_timedwait(&broker->changed, &broker->lock, &until) == 0);
    }
    pthread_mutex_unlock(&broker->lock);
}

#endif
