/* Lists of brokers and MOVED, against brokers in threads of this process. */
#include "../hws_broker.h"
#include "../hws_handshake.h"
#include "../hws_handshake_proof.h"
#include "../hws_record.h"
#include "../hws_status.h"
#include "hws_test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* How a broker behaves. */
typedef enum mood {
    SERVES,
    REFUSES,
    MOVES,               /* to the address in `to` */
    MOVES_WITHOUT_PROOF, /* the same, and it does not know the token */
    CLOSES_AT_ONCE,
    CLOSES_AT_PROOF,
    IS_SILENT /* answers no HELLO */
} mood_t;

typedef struct broker {
    mood_t mood;
    char to[400];
    hws_address_t address;
    int listener;
    pthread_t thread;
    _Atomic unsigned connections, sessions, statuses, joins;
} broker_t;

static char error[1024];

static hws_config_t configure(void) {
    return (hws_config_t) {.key_id = "key", .secret = "secret", .connect_timeout_ms = 20000};
}

static void add(hws_config_t *config, const broker_t *broker) {
    config->brokers[config->broker_count++] = broker->address;
}

static bool read_all(int fd, void *target, size_t bytes) {
    return recv(fd, target, bytes, MSG_WAITALL) == (ssize_t) bytes;
}

static void put(int fd, uint32_t opcode, const void *payload, size_t bytes) {
    uint8_t record[1024] = {0};
    const size_t padded = (size_t) hws_pad8(bytes);
    const hws_record_header_t header = {.length_bytes = (int32_t) (HWS_HEADER_BYTES + padded), .opcode = opcode};
    memcpy(record, &header, sizeof header);
    memcpy(record + sizeof header, payload, bytes);
    HWS_CHECK(send(fd, record, sizeof header + padded, MSG_NOSIGNAL) == (ssize_t) (sizeof header + padded));
}

static void put_refused(int fd, uint32_t code, const char *message) {
    uint8_t payload[512];
    const uint32_t words[2] = {code, (uint32_t) strlen(message)};
    memcpy(payload, words, sizeof words);
    memcpy(payload + sizeof words, message, words[1]);
    put(fd, HWS_CONTROL_REFUSED, payload, sizeof words + words[1]);
}

/* Takes HELLO, sends CHALLENGE and takes the record with the proof. Returns its opcode, or 0 without one. */
static uint32_t challenge(int fd, bool knows_token) {
    hws_record_header_t header;
    uint8_t hello[1024], payload[HWS_CHALLENGE_FIXED_BYTES] = {9}, last[256];
    HWS_CHECK(read_all(fd, &header, sizeof header) && header.opcode == HWS_CONTROL_HELLO);
    const size_t bytes = (size_t) header.length_bytes - sizeof header;
    HWS_CHECK(bytes <= sizeof hello && read_all(fd, hello, bytes));
    hws_token_keys_t keys;
    hws_token_keys_derive(knows_token ? "secret" : "another", &keys);
    const hws_bytes_t pieces[3] = {{"hawser-server-2", 15}, {payload, HWS_NONCE_SERVER_BYTES}, {hello, bytes}};
    hws_hmac_sha256(keys.server_key, sizeof keys.server_key, pieces, 3, payload + HWS_CHALLENGE_SERVER_PROOF_OFFSET);
    put(fd, HWS_CONTROL_CHALLENGE, payload, sizeof payload);
    const bool came = read_all(fd, &header, sizeof header)
        && (size_t) header.length_bytes - sizeof header <= sizeof last
        && read_all(fd, last, (size_t) header.length_bytes - sizeof header);
    return came ? header.opcode : 0;
}

static void admit(broker_t *broker, int fd, uint32_t opcode) {
    struct {
        uint32_t version, devices;
        uint64_t session, window;
        uint32_t record, bulk;
        uint64_t hash;
    } welcome = {HWS_PROTOCOL_VERSION, 1, 77, HWS_CREDIT_WINDOW_BYTES, HWS_MAX_RECORD_BYTES, HWS_MAX_BULK_BYTES, 0};
    const struct {
        uint32_t bytes;
        char text[8];
    } status = {8, "status 1"};
    const struct {
        uint32_t first, padding;
    } joined = {HWS_FIRST_STRIPE_CHUNK, 0};
    switch (opcode) {
        case HWS_CONTROL_PROOF:
            broker->sessions++;
            put(fd, HWS_CONTROL_WELCOME, &welcome, sizeof welcome);
            break;
        case HWS_CONTROL_ASK_STATUS: {
            uint8_t payload[HWS_STATUS_FIXED_BYTES + 8] = {0};
            memcpy(payload, &status.bytes, sizeof status.bytes);
            memcpy(payload + HWS_STATUS_FIXED_BYTES, status.text, sizeof status.text);
            broker->statuses++;
            put(fd, HWS_CONTROL_STATUS, payload, sizeof payload);
            break;
        }
        default:
            HWS_CHECK(opcode == HWS_CONTROL_JOIN);
            broker->joins++;
            put(fd, HWS_CONTROL_JOINED, &joined, HWS_JOINED_FIXED_BYTES);
    }
}

static void answer(broker_t *broker, int fd) {
    char byte;
    if (broker->mood == CLOSES_AT_ONCE) {
        return;
    }
    if (broker->mood == IS_SILENT) {
        while (recv(fd, &byte, 1, 0) > 0) {
        }
        return;
    }
    const uint32_t opcode = challenge(fd, broker->mood != MOVES_WITHOUT_PROOF);
    HWS_CHECK(opcode != 0);
    switch (broker->mood) {
        case REFUSES:
            put_refused(fd, HWS_REFUSED_NO_CAPACITY, "no session is free");
            break;
        case MOVES:
        case MOVES_WITHOUT_PROOF:
            put_refused(fd, HWS_REFUSED_MOVED, broker->to);
            break;
        case SERVES:
            admit(broker, fd, opcode);
            break;
        default:
            return;
    }
    shutdown(fd, SHUT_WR);
    while (recv(fd, &byte, 1, 0) > 0) { /* the guest closes first, when it has read the answer */
    }
}

static void *broker_main(void *argument) {
    broker_t *broker = argument;
    int fd;
    while ((fd = accept(broker->listener, NULL, NULL)) >= 0) {
        broker->connections++;
        answer(broker, fd);
        close(fd);
    }
    return NULL;
}

/* Takes a port, which refuses connections until open_door(). */
static void take_port(broker_t *broker) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    broker->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HWS_CHECK(bind(broker->listener, (struct sockaddr *) &address, length) == 0);
    HWS_CHECK(getsockname(broker->listener, (struct sockaddr *) &address, &length) == 0);
    snprintf(broker->address.host, sizeof broker->address.host, "127.0.0.1");
    snprintf(broker->address.port, sizeof broker->address.port, "%u", ntohs(address.sin_port));
}

static void start(broker_t *broker, mood_t mood, const broker_t *to) {
    memset(broker, 0, sizeof *broker);
    broker->mood = mood;
    if (to != NULL) {
        snprintf(broker->to, sizeof broker->to, "%s:%s", to->address.host, to->address.port);
    }
    take_port(broker);
    HWS_CHECK(listen(broker->listener, 8) == 0);
    HWS_CHECK(pthread_create(&broker->thread, NULL, broker_main, broker) == 0);
}

static void stop(broker_t *broker) {
    shutdown(broker->listener, SHUT_RDWR);
    HWS_CHECK(pthread_join(broker->thread, NULL) == 0);
    close(broker->listener);
}

static int shake(hws_carrier_t **carrier_p, const hws_config_t *config, void *state, char *error_p,
                 size_t error_capacity) {
    return hws_handshake(*carrier_p, config, 1, state, error_p, error_capacity);
}

/* Begins a session and ends it. Returns whether there was one; else `error` has the message. */
static bool begin(hws_config_t *config) {
    hws_welcome_t welcome;
    error[0] = '\0';
    hws_carrier_t *carrier = hws_broker_open(config, false, shake, &welcome, error, sizeof error);
    if (carrier == NULL) {
        HWS_CHECK(error[0] != '\0');
        return false;
    }
    HWS_CHECK(welcome.session_id == 77 && config->broker_count == 1);
    carrier->ops->destroy(carrier);
    return true;
}

static bool is_at(const hws_config_t *config, const broker_t *broker) {
    return strcmp(config->brokers[0].host, broker->address.host) == 0
        && strcmp(config->brokers[0].port, broker->address.port) == 0;
}

/* Whether the message names the broker. */
static bool names(const broker_t *broker) {
    char text[300];
    snprintf(text, sizeof text, "%s:%s", broker->address.host, broker->address.port);
    return strstr(error, text) != NULL;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void shouldTakeTheFirstBrokerThatAnswers(void) {
    broker_t absent = {.mood = SERVES}, first, second;
    hws_config_t config = configure();
    take_port(&absent);
    start(&first, SERVES, NULL);
    start(&second, SERVES, NULL);
    add(&config, &absent);
    add(&config, &first);
    add(&config, &second);
    HWS_CHECK(begin(&config) && is_at(&config, &first));
    stop(&first);
    stop(&second);
    HWS_CHECK(first.sessions == 1 && second.connections == 0);
    close(absent.listener);
}

static void shouldTakeTheNextBrokerWhenOneClosesTheConnection(void) {
    const mood_t moods[] = {CLOSES_AT_ONCE, CLOSES_AT_PROOF};
    for (size_t i = 0; i < sizeof moods / sizeof *moods; i++) {
        broker_t closes, serves;
        hws_config_t config = configure();
        start(&closes, moods[i], NULL);
        start(&serves, SERVES, NULL);
        add(&config, &closes);
        add(&config, &serves);
        HWS_CHECK(begin(&config) && is_at(&config, &serves));
        config = configure();
        add(&config, &serves);
        add(&config, &closes);
        add(&config, &closes);
        serves.mood = CLOSES_AT_PROOF;
        HWS_CHECK(!begin(&config) && names(&closes) && strstr(error, "closed the connection") != NULL);
        stop(&closes);
        stop(&serves);
        HWS_CHECK(closes.connections == 3 && serves.connections == 2);
    }
}

static void shouldTakeARefusalAsFinal(void) {
    broker_t refuses, serves;
    hws_config_t config = configure();
    start(&refuses, REFUSES, NULL);
    start(&serves, SERVES, NULL);
    add(&config, &refuses);
    add(&config, &serves);
    HWS_CHECK(!begin(&config) && names(&refuses) && strstr(error, "no session is free") != NULL);
    stop(&refuses);
    stop(&serves);
    HWS_CHECK(serves.connections == 0);
}

static void shouldFollowToTheBrokerThatHoldsTheVgpu(void) {
    broker_t other, holder, unused;
    hws_config_t config = configure();
    start(&holder, SERVES, NULL);
    start(&other, MOVES, &holder);
    start(&unused, SERVES, NULL);
    add(&config, &other);
    add(&config, &unused);
    HWS_CHECK(begin(&config) && is_at(&config, &holder));
    /* Further connections of the session go there and nowhere else. */
    const hws_welcome_t session = {.session_id = 77};
    uint32_t first_chunk = 0;
    hws_carrier_t *stripe = hws_broker_connect(&config, error, sizeof error);
    HWS_CHECK(stripe != NULL
              && hws_handshake_join(stripe, &config, 1, &session, &first_chunk, error, sizeof error) == 0);
    HWS_CHECK(first_chunk == HWS_FIRST_STRIPE_CHUNK);
    stripe->ops->destroy(stripe);
    stop(&other);
    stop(&holder);
    stop(&unused);
    HWS_CHECK(other.connections == 1 && holder.sessions == 1 && holder.joins == 1 && unused.connections == 0);
}

static void shouldNotMoveWithAJoin(void) {
    broker_t moves, holder;
    hws_config_t config = configure();
    start(&holder, SERVES, NULL);
    start(&moves, MOVES, &holder);
    add(&config, &moves);
    const hws_welcome_t session = {.session_id = 77};
    uint32_t first_chunk = 0;
    hws_carrier_t *stripe = hws_broker_connect(&config, error, sizeof error);
    HWS_CHECK(stripe != NULL
              && hws_handshake_join(stripe, &config, 1, &session, &first_chunk, error, sizeof error) == -1);
    HWS_CHECK(strstr(error, "the session's broker must take") != NULL && first_chunk == 0);
    stripe->ops->destroy(stripe);
    stop(&moves);
    stop(&holder);
    HWS_CHECK(holder.connections == 0);
}

static void shouldAskTheHolderForTheStatus(void) {
    static hws_status_t status;
    broker_t other, holder, next;
    hws_config_t config = configure();
    char from[300];
    start(&holder, SERVES, NULL);
    start(&other, MOVES, &holder);
    add(&config, &other);
    HWS_CHECK(hws_status_ask(&config, 1, &status, error, sizeof error) == 0 && strcmp(status.text, "status 1") == 0);
    snprintf(from, sizeof from, "broker 127.0.0.1:%s", holder.address.port);
    HWS_CHECK(strcmp(status.from, from) == 0 && is_at(&config, &other) && config.broker_count == 1);
    /* The next question goes there at once. */
    HWS_CHECK(hws_status_ask(&config, 1, &status, error, sizeof error) == 0 && other.connections == 1);
    /* When the vGPU has moved on, that broker knows, or the list does. */
    start(&next, SERVES, NULL);
    holder.mood = MOVES;
    snprintf(holder.to, sizeof holder.to, "127.0.0.1:%s", next.address.port);
    HWS_CHECK(hws_status_ask(&config, 1, &status, error, sizeof error) == 0 && next.statuses == 1);
    stop(&next);
    HWS_CHECK(hws_status_ask(&config, 1, &status, error, sizeof error) == -1 && names(&other) && names(&holder));
    snprintf(other.to, sizeof other.to, "127.0.0.1:1");
    HWS_CHECK(hws_status_ask(&config, 1, &status, error, sizeof error) == -1 && names(&other) && !names(&holder));
    stop(&other);
    stop(&holder);
    HWS_CHECK(holder.statuses == 2 && config.broker_count == 1);
}

static void shouldFollowOneHopOnly(void) {
    broker_t one, other, third;
    hws_config_t config = configure();
    start(&third, SERVES, NULL);
    start(&other, MOVES, &third);
    start(&one, MOVES, &other);
    add(&config, &one);
    add(&config, &third);
    HWS_CHECK(!begin(&config) && names(&one) && names(&other) && !names(&third));
    HWS_CHECK(strstr(error, "they disagree about the vGPU's broker") != NULL && strchr(error, '\n') == NULL);
    /* Nor round in a circle. */
    snprintf(one.to, sizeof one.to, "127.0.0.1:%s", one.address.port);
    config = configure();
    add(&config, &one);
    HWS_CHECK(!begin(&config) && strstr(error, "disagree") != NULL);
    stop(&one);
    stop(&other);
    stop(&third);
    HWS_CHECK(one.connections == 3 && other.connections == 1 && third.connections == 0);
}

static void shouldGoToNoAddressThatIsMalformed(void) {
    static const char *const addresses[] = {"127.0.0.1",   "127.0.0.1:0",     "127.0.0.1:65536", "127.0.0.1: 1",
                                            "a\033[2Jb:1", "127.0.0.1:1\r\n", "tls://a:1",       "a:1,b:1"};
    broker_t moves, unused;
    start(&moves, MOVES, NULL);
    start(&unused, SERVES, NULL);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        hws_config_t config = configure();
        add(&config, &moves);
        add(&config, &unused);
        snprintf(moves.to, sizeof moves.to, "%s", addresses[i]);
        HWS_CHECK(!begin(&config) && names(&moves) && strstr(error, "does not read host:port") != NULL);
        HWS_CHECK(strstr(error, addresses[i]) == NULL || strchr(addresses[i], '1') != NULL);
        HWS_CHECK(strpbrk(error, "\033\r\n") == NULL);
    }
    hws_config_t config = configure();
    add(&config, &moves);
    memset(moves.to, 'a', 300);
    moves.to[300] = '\0';
    HWS_CHECK(!begin(&config) && names(&moves) && strstr(error, "an address that is not one (300 bytes)") != NULL);
    stop(&moves);
    stop(&unused);
    HWS_CHECK(unused.connections == 0);
}

static void shouldNotFollowABrokerThatHasNotProvedTheToken(void) {
    broker_t moves, holder;
    hws_config_t config = configure();
    start(&holder, SERVES, NULL);
    start(&moves, MOVES_WITHOUT_PROOF, &holder);
    add(&config, &moves);
    HWS_CHECK(!begin(&config) && names(&moves) && strstr(error, "must prove that it has the token") != NULL);
    stop(&moves);
    stop(&holder);
    HWS_CHECK(holder.connections == 0);
}

static void shouldNameBothBrokersWhenTheHolderFails(void) {
    broker_t moves, holder;
    hws_config_t config = configure();
    start(&holder, REFUSES, NULL);
    start(&moves, MOVES, &holder);
    add(&config, &moves);
    HWS_CHECK(!begin(&config) && names(&moves) && names(&holder) && strstr(error, "no session is free") != NULL);
    stop(&holder);
    config = configure();
    add(&config, &moves);
    HWS_CHECK(!begin(&config) && names(&moves) && names(&holder) && strstr(error, "Connection refused") != NULL);
    stop(&moves);
}

/* The hop has only the time that is left. */
static void shouldReachAllBrokersWithinOneLimit(void) {
    broker_t moves, holder = {.mood = SERVES}, silent;
    hws_config_t config = configure();
    take_port(&holder); /* and never listens */
    start(&moves, MOVES, &holder);
    add(&config, &moves);
    config.connect_timeout_ms = 1000;
    hws_welcome_t welcome;
    int64_t began_ms = now_ms();
    HWS_CHECK(hws_broker_open(&config, true, shake, &welcome, error, sizeof error) == NULL);
    int64_t took_ms = now_ms() - began_ms;
    HWS_CHECK(names(&moves) && names(&holder) && took_ms >= 800 && took_ms < 10000);
    stop(&moves);
    close(holder.listener);
    /* A broker that answers no HELLO uses up the limit: its silence is final. */
    start(&silent, IS_SILENT, NULL);
    config = configure();
    config.connect_timeout_ms = 300;
    add(&config, &silent);
    HWS_CHECK(!begin(&config) && names(&silent) && strstr(error, "did not answer in time") != NULL);
    stop(&silent);
}

int main(void) {
    unsetenv("HAWSER_LOG");
    HWS_RUN(shouldTakeTheFirstBrokerThatAnswers);
    HWS_RUN(shouldTakeTheNextBrokerWhenOneClosesTheConnection);
    HWS_RUN(shouldTakeARefusalAsFinal);
    HWS_RUN(shouldFollowToTheBrokerThatHoldsTheVgpu);
    HWS_RUN(shouldNotMoveWithAJoin);
    HWS_RUN(shouldAskTheHolderForTheStatus);
    HWS_RUN(shouldFollowOneHopOnly);
    HWS_RUN(shouldGoToNoAddressThatIsMalformed);
    HWS_RUN(shouldNotFollowABrokerThatHasNotProvedTheToken);
    HWS_RUN(shouldNameBothBrokersWhenTheHolderFails);
    HWS_RUN(shouldReachAllBrokersWithinOneLimit);
    return 0;
}
