/* The handshake against ends that lie, stall or break off; the configuration. */
#include "../hws_handshake.h"
#include "../hws_record.h"
#include "../tcp/hws_tcp.h"
#include "hws_test.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const hws_config_t config = {.key_id = "key", .secret = "secret", .connect_timeout_ms = 20000};

typedef struct answer {
    int fd;
    uint8_t bytes[512];
    size_t count;
} answer_t;

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
    return (welcome_t) {HWS_PROTOCOL_VERSION, 2, 77, HWS_CREDIT_WINDOW_BYTES, HWS_MAX_RECORD_BYTES, HWS_MAX_BULK_BYTES,
                        0};
}

/* What a broker says: a challenge and a WELCOME. */
static size_t put_dialogue(uint8_t *bytes, const welcome_t *welcome) {
    uint8_t nonce[32] = {9};
    size_t used = put_record(bytes, HWS_CONTROL_CHALLENGE, nonce, sizeof nonce);
    return used + put_record(bytes + used, HWS_CONTROL_WELCOME, welcome, sizeof *welcome);
}

static void *speak(void *argument) {
    answer_t *answer = argument;
    uint8_t sink[4096];
    HWS_CHECK(send(answer->fd, answer->bytes, answer->count, MSG_NOSIGNAL) == (ssize_t) answer->count);
    shutdown(answer->fd, SHUT_WR);
    while (read(answer->fd, sink, sizeof sink) > 0) {
    }
    return NULL;
}

/* Speaks with an end that says so. Takes a WELCOME, or a text of at most text_capacity when there is room for one. */
static int talk(const uint8_t *bytes, size_t count, hws_welcome_t *welcome_p, char *text_p, size_t text_capacity,
                char *error_p, size_t capacity) {
    int ends[2];
    pthread_t thread;
    answer_t answer = {.count = count};
    HWS_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    answer.fd = ends[1];
    memcpy(answer.bytes, bytes, count);
    HWS_CHECK(pthread_create(&thread, NULL, speak, &answer) == 0);
    hws_carrier_t *carrier = hws_tcp_adopt(ends[0]);
    int rc = text_p == NULL ? hws_handshake(carrier, &config, 1, welcome_p, error_p, capacity)
                            : hws_handshake_ask_status(carrier, &config, 1, text_p, text_capacity, error_p, capacity);
    carrier->ops->shutdown(carrier);
    pthread_join(thread, NULL);
    carrier->ops->close(carrier);
    free(carrier);
    close(ends[1]);
    return rc;
}

static int shake(const uint8_t *bytes, size_t count, hws_welcome_t *welcome_p, char *error_p, size_t capacity) {
    return talk(bytes, count, welcome_p, NULL, 0, error_p, capacity);
}

/* A challenge and a status of so many bytes, which says that it has `said`. */
static size_t put_status(uint8_t *bytes, uint32_t length, uint32_t said) {
    uint8_t nonce[32] = {9}, payload[256] = {0};
    memcpy(payload, &said, sizeof said);
    memset(payload + HWS_STATUS_FIXED_BYTES, 'x', length);
    size_t used = put_record(bytes, HWS_CONTROL_CHALLENGE, nonce, sizeof nonce);
    return used + put_record(bytes + used, HWS_CONTROL_STATUS, payload,
                             HWS_STATUS_FIXED_BYTES + (uint32_t) hws_pad8(length));
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
        HWS_CHECK(talk(bytes, cut, NULL, text, sizeof text, error, sizeof error) == -1 && error[0] != '\0');
    }
    welcome_t welcome = good_welcome();
    HWS_CHECK(talk(bytes, put_dialogue(bytes, &welcome), NULL, text, sizeof text, error, sizeof error) == -1);
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
        HWS_CHECK(shake(bytes, cut, &welcome, error, sizeof error) == -1 && error[0] != '\0');
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
    struct { uint32_t code, length; char text[16]; } refused = {3, 11, "no capacity"};
    size_t count = put_record(bytes, HWS_CONTROL_REFUSED, &refused, sizeof refused);
    HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == -1 && strstr(error, "no capacity") != NULL);
    refused.length = UINT32_MAX;
    count = put_record(bytes, HWS_CONTROL_REFUSED, &refused, sizeof refused);
    HWS_CHECK(shake(bytes, count, &welcome, error, sizeof error) == -1);
    HWS_CHECK(shake((const uint8_t *) "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", 47, &welcome, error,
                    sizeof error) == -1);
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
    HWS_CHECK(strcmp(loaded.host, "gpu.example") == 0 && strcmp(loaded.port, "99") == 0);
    HWS_CHECK(strcmp(loaded.key_id, "id") == 0 && strcmp(loaded.secret, "s3cret_-") == 0);
    HWS_CHECK(load("[::1]:5", "a.b", &loaded) == 0 && strcmp(loaded.host, "::1") == 0);
    HWS_CHECK(load("host", "a.b", &loaded) == 0 && strcmp(loaded.port, HWS_DEFAULT_PORT) == 0);
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
    HWS_CHECK(strcmp(loaded.host, "right") == 0 && strcmp(loaded.port, "2") == 0 && strcmp(loaded.key_id, "k") == 0);
    setenv("HAWSER_BROKER", "mine:3", 1);
    HWS_CHECK(hws_config_load(&loaded, error, sizeof error) == 0 && strcmp(loaded.host, "mine") == 0);
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
    HWS_CHECK(loaded.host[0] == '\0' && strstr(loaded.missing, "HAWSER_BROKER") != NULL);
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
    HWS_RUN(shouldRefuseADialogueThatEndsAtAnyByte);
    HWS_RUN(shouldRefuseLimitsThatMakeNoSense);
    HWS_RUN(shouldShowWhatTheBrokerSaysWhenItRefuses);
    HWS_RUN(shouldTakeAStatusThatFits);
    HWS_RUN(shouldTakeTheConfigurationFromTheEnvironment);
    HWS_RUN(shouldFillInFromTheFile);
    HWS_RUN(shouldDoWithoutABrokerUnlessOnlyTcpWillDo);
    return 0;
}
