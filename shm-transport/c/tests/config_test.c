/* The configuration's file, also damaged: reading gives a message, or a configuration that is valid. */
#include "../hws_config.h"
#include "hws_test.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 30000

static const char sample[] = "# a comment\n[other]\nbroker = \"x\"\n\n[guest] # ours\ncarrier = \"auto\"\n"
                             "broker = \"tls://broker.example:7656\"\nca_file = '/etc/ca.pem'  # authorities\n"
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
    HWS_CHECK(config.tls && strcmp(config.host, "broker.example") == 0 && strcmp(config.port, "7656") == 0);
    HWS_CHECK(strcmp(config.key_id, "key-1") == 0 && strcmp(config.secret, "secret_2") == 0);
    HWS_CHECK(strcmp(config.from, path) == 0 && strcmp(config.ca_file, "/etc/ca.pem") == 0
              && config.missing[0] == '\0');
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
    static const char *const pieces[] = {"\"", "'", "[guest]", "=", "\n", "#", "\\", "tls://", "[::1]:", ".", "\r"};
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
        HWS_CHECK(is_ended(config.host, sizeof config.host) && is_ended(config.ca_file, sizeof config.ca_file));
        HWS_CHECK(is_ended(config.region, sizeof config.region) && is_ended(config.missing, sizeof config.missing));
        if (config.missing[0] == '\0') {
            int port = atoi(config.port);
            HWS_CHECK(config.host[0] != '\0' && port >= 1 && port <= 65535);
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
    HWS_RUN(shouldReadTheSettingsOfRdma);
    HWS_RUN(shouldSayWhatIsWrong);
    HWS_RUN(shouldEndAFileThatDoesNotEnd);
    HWS_RUN(shouldTakeEveryDamage);
    return 0;
}
