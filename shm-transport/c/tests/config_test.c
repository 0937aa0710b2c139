/* The configuration's file, also damaged: reading gives a message, or a configuration that is valid. */
#include "../hws_config.h"
#include "hws_test.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 30000

static const char sample[] =
    "# a comment\n[other]\nbroker = \"x\"\n\n[guest] # ours\ncarrier = \"auto\"\n"
    "broker = \"tls://broker.example:7656, tls://b:1\"\nca_file = '/etc/ca.pem'  # authorities\n"
    "token = \"key-1.secret_2\"\nsomething_newer = \"1\"\n";
static char path[64], error[1024];
static int file;

static int load(const char *text, size_t length, hws_config_t *config_p) {
    HWS_CHECK(ftruncate(file, 0) == 0 && pwrite(file, text, length, 0) == (ssize_t) length);
    memset(error, 0, sizeof error);
    return hws_config_load(config_p, error, sizeof error);
}

static void refuse(const char *text, const char *reason) {
    hws_config_t config;
    HWS_CHECK(load(text, strlen(text), &config) == -1);
    HWS_CHECK(strstr(error, reason) != NULL);
}

static void shouldReadAFile(void) {
    hws_config_t config;
    HWS_CHECK(load(sample, sizeof sample - 1, &config) == 0);
    HWS_CHECK(config.tls && strcmp(config.brokers[0].host, "broker.example") == 0
              && strcmp(config.brokers[0].port, "7656") == 0);
    HWS_CHECK(strcmp(config.key_id, "key-1") == 0 && strcmp(config.secret, "secret_2") == 0);
    HWS_CHECK(strcmp(config.from, path) == 0 && strcmp(config.ca_file, "/etc/ca.pem") == 0
              && config.missing[0] == '\0');
}

static void shouldReadAListOfBrokers(void) {
    hws_config_t config;
    static const char text[] = "[guest]\nbroker = ' tls://a , tls://b.example:99,tls://[fd00::1]:7 '\ntoken = 'k.s'\n";
    HWS_CHECK(load(text, sizeof text - 1, &config) == 0);
    HWS_CHECK(config.broker_count == 3 && config.tls);
    HWS_CHECK(strcmp(config.brokers[0].host, "a") == 0 && strcmp(config.brokers[0].port, "7656") == 0);
    HWS_CHECK(strcmp(config.brokers[1].host, "b.example") == 0 && strcmp(config.brokers[1].port, "99") == 0);
    HWS_CHECK(strcmp(config.brokers[2].host, "fd00::1") == 0 && strcmp(config.brokers[2].port, "7") == 0);
    static const char plain[] = "[guest]\nbroker = '1.2.3.4,tcp://b:5,c,d,e,f,g,h'\ntoken = 'k.s'\n";
    HWS_CHECK(load(plain, sizeof plain - 1, &config) == 0 && config.broker_count == 8 && !config.tls);
    HWS_CHECK(strcmp(config.brokers[0].port, "7654") == 0 && strcmp(config.brokers[7].host, "h") == 0);
    refuse("[guest]\nbroker = 'a,b,c,d,e,f,g,h,i'\ntoken = 'k.s'\n", "at most 8 brokers");
    refuse("[guest]\nbroker = 'tls://a,b'\ntoken = 'k.s'\n", "must all have tls://, or none");
    refuse("[guest]\nbroker = 'a,tls://b'\ntoken = 'k.s'\n", "must all have tls://, or none");
    refuse("[guest]\nbroker = 'a,'\ntoken = 'k.s'\n", "a broker must read host:port");
    refuse("[guest]\nbroker = ',a'\ntoken = 'k.s'\n", "a broker must read host:port");
    refuse("[guest]\nbroker = 'a,b:0'\ntoken = 'k.s'\n", "a broker must read host:port");
}

/* The longest list that a broker's setting may have also fits into a line of the file. */
static void shouldReadALongListFromTheFile(void) {
    hws_config_t config;
    char text[1200], list[900] = "";
    for (int i = 0; i < 8; i++) {
        char host[112];
        memset(host, 'a' + i, sizeof host - 1);
        host[sizeof host - 1] = '\0';
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i == 0 ? "" : ",", host);
    }
    HWS_CHECK(strlen(list) == 895);
    int length = snprintf(text, sizeof text, "[guest]\nbroker = \"%s\"\ntoken = 'k.s'\n", list);
    HWS_CHECK(load(text, (size_t) length, &config) == 0 && config.broker_count == 8);
    HWS_CHECK(strlen(config.brokers[7].host) == 111 && config.brokers[7].host[110] == 'h');
}

static void shouldCheckTheAddressThatABrokerNames(void) {
    hws_address_t address;
    static const char *const good[] = {"a:1", "gpu-2.example_x:65535", "10.0.0.1:7654", "[fd00::1]:7656",
                                       "[::ffff:1.2.3.4]:1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        HWS_CHECK(hws_address_split_moved(good[i], &address) == 0);
    }
    HWS_CHECK(strcmp(address.host, "::ffff:1.2.3.4") == 0 && strcmp(address.port, "1") == 0);
    static const char *const bad[] = {
        "",         "a",     "a:",         "a:0",         "a:65536",    "a:-1",        "a:+1",     "a:01",
        "a:1 ",     " a:1",  "a b:1",      "a:1\n",       "a\t:1",      "a\033[2J:1",  "a\x80:1",  ":1",
        "a:1:2",    "::1:2", "[::1]",      "[::1]:",      "[::1]:0",    "[::1]:65536", "[::1]x:1", "[::1",
        "[a]:1",    "[]:1",  "[::1%lo]:1", "tls://a:1",   "a/b:1",      "a@b:1",       "a:1,b:2",  "-a:1",
        "a:123456", "a:1/x", "a\"b:1",     "[1.2.3.4]:1", "a:1\r\nb:1", "\xc3\xa9:1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memset(&address, 0x5a, sizeof address);
        if (hws_address_split_moved(bad[i], &address) != -1 || address.host[0] != 0x5a) {
            fprintf(stderr, "taken: %s\n", bad[i]);
            exit(1);
        }
    }
    char text[400];
    memset(text, 'a', sizeof text);
    snprintf(text + 253, sizeof text - 253, ":1");
    HWS_CHECK(strlen(text) == 255 && hws_address_split_moved(text, &address) == 0 && strlen(address.host) == 253);
    text[253] = 'a';
    snprintf(text + 254, sizeof text - 254, ":1");
    HWS_CHECK(strlen(text) == 256 && hws_address_split_moved(text, &address) == -1);
}

static void shouldReadTheSettingsOfRdma(void) {
    hws_config_t config;
    static const char text[] = "[guest]\ncarrier = 'rdma'\nbroker = 'b'\ntoken = 'a.b'\nrdma_device = 'mlx5_1'\n"
                               "rdma_port = '2'\nrdma_traffic_class = '106'\n";
    setenv("HAWSER_RDMA_PORT", "1", 1);
    setenv("HAWSER_RDMA_RETRY_MS", "500", 1);
    HWS_CHECK(load(text, sizeof text - 1, &config) == 0);
    HWS_CHECK(config.carrier == HWS_CARRIER_RDMA && strcmp(config.rdma_device, "mlx5_1") == 0);
    HWS_CHECK(!hws_config_takes_region(&config));
    HWS_CHECK(config.rdma.port == 1 && config.rdma.retry_ms == 500 && config.rdma.traffic_class == 106);
    HWS_CHECK(config.rdma.gid_index == -1 && config.rdma.partition == 0 && config.rdma.is_worker == 0);
    unsetenv("HAWSER_RDMA_PORT");
    unsetenv("HAWSER_RDMA_RETRY_MS");
}

static void shouldSayWhatIsWrong(void) {
    char text[2048];
    refuse("[guest]\nbroker\n", "must read key = \"value\"");
    refuse("[guest]\nbroker = \"a\" \"b\"\n", "must read key = \"value\"");
    refuse("[guest]\nbroker = \"a\\n\"\n", "must read key = \"value\"");
    refuse("[guest]\nbroker = 'a:99999'\ntoken = 'a.b'\n", "a broker must read host:port");
    refuse("[guest]\nbroker = 'a'\ntoken = 'ab'\n", "a token must read keyId.secret");
    refuse("[guest]\ncarrier = 'pigeon'\n", "a carrier must be auto, shm, tcp or rdma");
    refuse("[guest]\ncarrier = 'rdma'\n", "no broker is configured");
    refuse("[guest]\nrdma_port = '256'\n", "HAWSER_RDMA_PORT must be 0..255");
    refuse("[guest]\nrdma_gid_index = '-1'\n", "HAWSER_RDMA_GID_INDEX must be 0..255");
    refuse("[guest]\nrdma_gid_index = '256'\n", "HAWSER_RDMA_GID_INDEX must be 0..255");
    refuse("[guest]\nrdma_service_level = '16'\n", "HAWSER_RDMA_SERVICE_LEVEL must be 0..15");
    memset(text, 'x', sizeof text);
    memcpy(text, "[guest]\n", 8);
    text[sizeof text - 1] = '\0';
    refuse(text, "lines of at most");
}

/* A device file never ends and has no line end. */
static void shouldEndAFileThatDoesNotEnd(void) {
    hws_config_t config;
    char text[40000];
    memset(text, '\n', sizeof text);
    HWS_CHECK(load(text, sizeof text, &config) == -1 && strstr(error, "lines of at most") != NULL);
}

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint32_t next(uint32_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (state >> 33) % bound;
}

static bool is_ended(const char *text, size_t capacity) {
    return memchr(text, '\0', capacity) != NULL;
}

static void shouldTakeEveryDamage(void) {
    static const char *const pieces[] = {"\"",     "'",      "[guest]", "=",  "\n", "#",  "\\",
                                         "tls://", "[::1]:", ".",       "\r", ",",  ",a,"};
    char text[sizeof sample + 256];
    unsigned taken = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t length = sizeof sample - 1;
        memcpy(text, sample, length);
        for (uint32_t damages = 1 + next(6); damages > 0 && length > 1; damages--) {
            uint32_t at = next((uint32_t) length);
            switch (next(4)) {
                case 0:
                    text[at] = (char) next(256);
                    break;
                case 1:
                    length = at + 1;
                    break;
                case 2: {
                    const char *piece = pieces[next(sizeof pieces / sizeof *pieces)];
                    size_t more = strlen(piece);
                    if (length + more < sizeof text) {
                        memmove(text + at + more, text + at, length - at);
                        memcpy(text + at, piece, more);
                        length += more;
                    }
                    break;
                }
                default: {
                    size_t less = next((uint32_t) (length - at)) % 24;
                    memmove(text + at, text + at + less, length - at - less);
                    length -= less;
                }
            }
        }
        hws_config_t config;
        if (load(text, length, &config) != 0) {
            HWS_CHECK(error[0] != '\0' && is_ended(error, sizeof error));
            continue;
        }
        taken++;
        HWS_CHECK(config.broker_count <= HWS_MAX_BROKERS && is_ended(config.ca_file, sizeof config.ca_file));
        HWS_CHECK(is_ended(config.region, sizeof config.region) && is_ended(config.missing, sizeof config.missing));
        HWS_CHECK((config.missing[0] == '\0') == (config.broker_count > 0));
        for (unsigned i = 0; i < config.broker_count; i++) {
            const hws_address_t *broker = &config.brokers[i];
            HWS_CHECK(is_ended(broker->host, sizeof broker->host) && is_ended(broker->port, sizeof broker->port));
            int port = atoi(broker->port);
            HWS_CHECK(broker->host[0] != '\0' && port >= 1 && port <= 65535);
            HWS_CHECK(config.key_id[0] != '\0' && config.secret[0] != '\0');
        }
    }
    HWS_CHECK(taken > ROUNDS / 20 && taken < ROUNDS); /* else the damage does not reach both ends */
}

int main(void) {
    file = memfd_create("guest.toml", 0);
    HWS_CHECK(file >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    static const char *const variables[] = {"HAWSER_CARRIER",           "HAWSER_REGION", "HAWSER_BROKER",
                                            "HAWSER_CA_FILE",           "HAWSER_TOKEN",  "HAWSER_TOKEN_FILE",
                                            "HAWSER_CONNECT_TIMEOUT_MS"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        unsetenv(variables[i]);
    }
    setenv("HAWSER_CONFIG", path, 1);
    HWS_RUN(shouldReadAFile);
    HWS_RUN(shouldReadAListOfBrokers);
    HWS_RUN(shouldReadALongListFromTheFile);
    HWS_RUN(shouldCheckTheAddressThatABrokerNames);
    HWS_RUN(shouldReadTheSettingsOfRdma);
    HWS_RUN(shouldSayWhatIsWrong);
    HWS_RUN(shouldEndAFileThatDoesNotEnd);
    HWS_RUN(shouldTakeEveryDamage);
    return 0;
}
