/* Answers of XenStore, written by a peer: valid, cut at each length, too long, of another kind, missing. */
#include "../xenstore.h"
#include "tests/hws_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * Replaces libc's. Like the kernel's device it reports when there is something to read, and never that it can be
 * written.
 */
int poll(struct pollfd *descriptors, nfds_t count, int timeout_ms) {
    struct timespec limit = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000l};
    for (nfds_t i = 0; i < count; i++) {
        descriptors[i].events &= ~POLLOUT;
    }
    return ppoll(descriptors, count, timeout_ms < 0 ? NULL : &limit, NULL);
}

enum { READ = 2, WATCH_EVENT = 15, ERROR = 16 };

/* The peer's thread: reads a whole request, then writes `answer` in pieces, then closes unless keep_open. */
typedef struct script {
    int descriptor;
    const char *answer;
    size_t length;
    size_t piece;  /* bytes of one write */
    int keep_open; /* silence follows instead of an end */
    char key[HWS_XENSTORE_MAX_KEY + 1];
    uint32_t request_id;
} script_t;

static void take(int descriptor, void *data, size_t length) {
    for (char *at = data; length > 0;) {
        ssize_t taken = read(descriptor, at, length);
        HWS_CHECK(taken > 0);
        at += taken;
        length -= (size_t) taken;
    }
}

static void *play(void *argument) {
    script_t *script = argument;
    uint32_t header[4];
    take(script->descriptor, header, sizeof header);
    HWS_CHECK(header[0] == READ && header[2] == 0 && header[3] >= 2 && header[3] <= sizeof script->key);
    take(script->descriptor, script->key, header[3]);
    HWS_CHECK(script->key[header[3] - 1] == '\0');
    script->request_id = header[1];
    for (size_t at = 0; at < script->length;) {
        size_t length = script->length - at < script->piece ? script->length - at : script->piece;
        /* The reader may have given up and closed. */
        ssize_t sent = send(script->descriptor, script->answer + at, length, MSG_NOSIGNAL);
        if (sent < 0) {
            HWS_CHECK(errno == EPIPE || errno == ECONNRESET);
            break;
        }
        at += (size_t) sent;
    }
    if (!script->keep_open) {
        shutdown(script->descriptor, SHUT_RDWR);
    }
    return NULL;
}

static char text[HWS_XENSTORE_MAX_PAYLOAD + 1], error[512];
static char asked[HWS_XENSTORE_MAX_KEY + 1];

/* Reads `key` from a peer with this answer. A silent peer is waited for only briefly. */
static int converse_by(size_t piece, int keep_open, const char *key, size_t capacity, const void *answer,
                       size_t length) {
    int pair[2];
    HWS_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    /* Our end as the device is opened; the peer's end blocks. */
    HWS_CHECK(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
    script_t script = {
        .descriptor = pair[1], .answer = answer, .length = length, .piece = piece, .keep_open = keep_open};
    pthread_t peer;
    HWS_CHECK(pthread_create(&peer, NULL, play, &script) == 0);
    memset(text, 'x', sizeof text);
    error[0] = '\0';
    int rc = hws_xenstore_read_from(pair[0], key, keep_open ? 200 : 60000, text, capacity, error, sizeof error);
    close(pair[0]);
    pthread_join(peer, NULL);
    close(pair[1]);
    memcpy(asked, script.key, sizeof asked);
    HWS_CHECK(rc == 1 || text[0] == 'x'); /* written only with a value */
    HWS_CHECK((rc == -1) == (error[0] != '\0'));
    return rc;
}

static int converse(const char *key, size_t capacity, const void *answer, size_t length) {
    return converse_by(length + 1, 0, key, capacity, answer, length);
}

/* The number in the client's requests, learned from a first exchange, as a peer does. */
static uint32_t request_id(void) {
    static uint32_t id;
    if (id == 0) {
        int pair[2];
        HWS_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        script_t script = {.descriptor = pair[1], .answer = "", .length = 0, .piece = 1};
        pthread_t peer;
        HWS_CHECK(pthread_create(&peer, NULL, play, &script) == 0);
        HWS_CHECK(hws_xenstore_read_from(pair[0], "a", 60000, text, 9, error, sizeof error) == -1);
        pthread_join(peer, NULL);
        close(pair[0]);
        close(pair[1]);
        id = script.request_id;
    }
    return id;
}

/* Appends a message; returns the new length. */
static size_t put(char *answer, size_t at, uint32_t type, uint32_t id, uint32_t length, const void *payload,
                  size_t payload_bytes) {
    uint32_t header[4] = {type, id, 0, length};
    memcpy(answer + at, header, sizeof header);
    memcpy(answer + at + sizeof header, payload, payload_bytes);
    return at + sizeof header + payload_bytes;
}

static size_t put_text(char *answer, size_t at, uint32_t type, const char *payload, size_t payload_bytes) {
    return put(answer, at, type, request_id(), (uint32_t) payload_bytes, payload, payload_bytes);
}

static char answer[1 << 17];

static void shouldReadAKey(void) {
    size_t length = put_text(answer, 0, READ, "10.0.0.1:7654", 13);
    HWS_CHECK(converse("vm-data/hawser/broker", sizeof text, answer, length) == 1);
    HWS_CHECK(strcmp(text, "10.0.0.1:7654") == 0);
    HWS_CHECK(strcmp(asked, "vm-data/hawser/broker") == 0);
    /* Byte by byte, as a stream may deliver it. */
    HWS_CHECK(converse_by(1, 0, "k", sizeof text, answer, length) == 1 && strcmp(text, "10.0.0.1:7654") == 0);
}

static void shouldReadAnEmptyValueAndTheLongestOne(void) {
    static char longest[HWS_XENSTORE_MAX_PAYLOAD];
    HWS_CHECK(converse("k", 1, answer, put_text(answer, 0, READ, "", 0)) == 1 && text[0] == '\0');
    memset(longest, 'a', sizeof longest);
    HWS_CHECK(converse("k", sizeof text, answer, put_text(answer, 0, READ, longest, sizeof longest)) == 1);
    HWS_CHECK(strlen(text) == sizeof longest);
}

static void shouldSayThatAKeyIsNotThere(void) {
    HWS_CHECK(converse("k", sizeof text, answer, put_text(answer, 0, ERROR, "ENOENT", 7)) == 0);
    HWS_CHECK(converse("k", sizeof text, answer, put_text(answer, 0, ERROR, "ENOENT", 6)) == 0); /* without its NUL */
}

static void shouldTellOtherErrors(void) {
    HWS_CHECK(converse("a/b", sizeof text, answer, put_text(answer, 0, ERROR, "EACCES", 7)) == -1);
    HWS_CHECK(strcmp(error, "XenStore refuses a/b: EACCES") == 0);
    HWS_CHECK(converse("k", sizeof text, answer, put_text(answer, 0, ERROR, "", 0)) == -1);
    HWS_CHECK(converse("k", sizeof text, answer, put_text(answer, 0, ERROR, "\x1b[31m\n", 7)) == -1);
    HWS_CHECK(strcmp(error, "XenStore refuses k: ?[31m?") == 0);
    static char endless[HWS_XENSTORE_MAX_PAYLOAD];
    memset(endless, 'E', sizeof endless);
    HWS_CHECK(converse("k", sizeof text, answer, put_text(answer, 0, ERROR, endless, sizeof endless)) == -1);
}

static void shouldPassOverEvents(void) {
    size_t length = put(answer, 0, WATCH_EVENT, 0, 4, "a\0b", 4);
    length = put(answer, length, WATCH_EVENT, 7, 0, "", 0);
    length = put_text(answer, length, READ, "v", 1);
    HWS_CHECK(converse("k", sizeof text, answer, length) == 1 && strcmp(text, "v") == 0);
    for (int i = length = 0; i < 1000; i++) {
        length = put(answer, length, WATCH_EVENT, 0, 0, "", 0);
    }
    length = put_text(answer, length, READ, "v", 1);
    HWS_CHECK(converse("k", sizeof text, answer, length) == -1);
}

static void shouldRefuseWhatDoesNotFit(void) {
    size_t length = put_text(answer, 0, READ, "12345678", 8);
    HWS_CHECK(converse("k", 9, answer, length) == 1 && strcmp(text, "12345678") == 0);
    HWS_CHECK(converse("k", 8, answer, length) == -1);
    HWS_CHECK(strcmp(error, "XenStore's k is too long: 8 bytes, at most 7") == 0);
    HWS_CHECK(converse("k", 0, answer, length) == -1);
}

static void shouldRefuseANulInsideAValue(void) {
    HWS_CHECK(converse("k", sizeof text, answer, put_text(answer, 0, READ, "a\0b", 3)) == -1);
    HWS_CHECK(converse("k", sizeof text, answer, put_text(answer, 0, READ, "a", 2)) == -1);
}

static void shouldRefuseEachTruncation(void) {
    char whole[64];
    size_t length = put_text(whole, 0, READ, "10.0.0.1:7654", 13);
    for (size_t cut = 0; cut < length; cut++) {
        HWS_CHECK(converse("k", sizeof text, whole, cut) == -1);
    }
    length = put_text(whole, 0, ERROR, "ENOENT", 7);
    for (size_t cut = 0; cut < length; cut++) {
        HWS_CHECK(converse("k", sizeof text, whole, cut) == -1);
    }
}

static void shouldRefuseLengthsBeyondTheProtocols(void) {
    static const uint32_t lengths[] = {HWS_XENSTORE_MAX_PAYLOAD + 1, 65536, 0x7fffffff, 0x80000000, 0xffffffff};
    static const uint32_t types[] = {READ, ERROR, WATCH_EVENT};
    static char filling[70000];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
            size_t length = put(answer, 0, types[j], request_id(), lengths[i], filling, sizeof filling);
            HWS_CHECK(converse("k", sizeof text, answer, length) == -1);
            HWS_CHECK(strcmp(error, "XenStore's answer is longer than the protocol allows") == 0);
        }
    }
}

static void shouldRefuseAnswersToSomethingElse(void) {
    for (uint32_t type = 0; type < 30; type++) {
        if (type != READ && type != ERROR && type != WATCH_EVENT) {
            HWS_CHECK(converse("k", sizeof text, answer, put_text(answer, 0, type, "v", 1)) == -1);
        }
    }
    HWS_CHECK(converse("k", sizeof text, answer, put(answer, 0, READ, request_id() + 1, 1, "v", 1)) == -1);
    HWS_CHECK(converse("k", sizeof text, answer, put(answer, 0, ERROR, 0, 7, "ENOENT", 7)) == -1);
}

static void shouldTakeNoHarmFromAnyBytes(void) {
    uint32_t state = 1;
    for (int round = 0; round < 3000; round++) {
        size_t length = put(answer, 0, READ, request_id(), 13, "10.0.0.1:7654", 13);
        for (int change = 0; change < 1 + round % 4; change++) {
            state = state * 1664525u + 1013904223u;
            answer[(state >> 8) % length] = (char) (state >> 24);
        }
        int rc = converse("k", 12 + (size_t) round % 4, answer, length);
        HWS_CHECK(rc == -1 || rc == 0 || (rc == 1 && strlen(text) <= 13));
    }
}

static void shouldNotWaitForEver(void) {
    size_t length = put_text(answer, 0, READ, "value", 5);
    for (size_t cut = 0; cut < length; cut += 10) {
        HWS_CHECK(converse_by(length, 1, "k", sizeof text, answer, cut) == -1);
        HWS_CHECK(strcmp(error, "XenStore does not answer in time") == 0);
    }
}

static void shouldRefuseKeysThatTheProtocolDoesNotKnow(void) {
    static char key[HWS_XENSTORE_MAX_KEY + 2];
    memset(key, 'k', HWS_XENSTORE_MAX_KEY + 1);
    HWS_CHECK(hws_xenstore_read_from(-1, key, 1000, text, sizeof text, error, sizeof error) == -1);
    HWS_CHECK(hws_xenstore_read_from(-1, "", 1000, text, sizeof text, error, sizeof error) == -1);
    key[HWS_XENSTORE_MAX_KEY] = '\0';
    HWS_CHECK(converse(key, sizeof text, answer, put_text(answer, 0, READ, "v", 1)) == 1 && strcmp(asked, key) == 0);
}

static void shouldFindNothingWhereThereIsNoXen(void) {
    if (access("/dev/xen/xenbus", F_OK) == 0 || access("/proc/xen/xenbus", F_OK) == 0) {
        fprintf(stderr, "  not tested: this is a domain of Xen\n");
        return;
    }
    HWS_CHECK(hws_xenstore_read("vm-data/hawser/broker", text, sizeof text, error, sizeof error) == 0);
}

int main(void) {
    HWS_RUN(shouldReadAKey);
    HWS_RUN(shouldReadAnEmptyValueAndTheLongestOne);
    HWS_RUN(shouldSayThatAKeyIsNotThere);
    HWS_RUN(shouldTellOtherErrors);
    HWS_RUN(shouldPassOverEvents);
    HWS_RUN(shouldRefuseWhatDoesNotFit);
    HWS_RUN(shouldRefuseANulInsideAValue);
    HWS_RUN(shouldRefuseEachTruncation);
    HWS_RUN(shouldRefuseLengthsBeyondTheProtocols);
    HWS_RUN(shouldRefuseAnswersToSomethingElse);
    HWS_RUN(shouldTakeNoHarmFromAnyBytes);
    HWS_RUN(shouldNotWaitForEver);
    HWS_RUN(shouldRefuseKeysThatTheProtocolDoesNotKnow);
    HWS_RUN(shouldFindNothingWhereThereIsNoXen);
    return 0;
}
