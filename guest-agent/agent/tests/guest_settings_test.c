/* Settings of a hypervisor: hostile text must be refused, and accepted values must be rendered unchanged. */
#include "../guest_settings.h"
#include "hws_config.h"
#include "tests/hws_test.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 30000
#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIU\nq8+/AA==\n-----END CERTIFICATE-----\n"

static const char sample[] = "# from hawserd\n[guest]\ncarrier = \"tcp\"\nbroker = \"tls://10.0.0.1:7656\"   # ours\n"
                             "token = 'key.secret'\n\nca = \"\"\"\n" CERTIFICATE "\"\"\"\n";
static hws_guest_settings_t settings;
static char error[512];

static int parse(const char *text) {
    error[0] = '\0';
    return hws_guest_settings_parse(text, strlen(text), &settings, error, sizeof error) == 0
            && hws_guest_settings_check(&settings, error, sizeof error) == 0
        ? 0
        : -1;
}

static void refuse(const char *text, const char *reason) {
    HWS_CHECK(parse(text) == -1);
    if (strstr(error, reason) == NULL) {
        fprintf(stderr, "message: %s\n", error);
    }
    HWS_CHECK(strstr(error, reason) != NULL);
}

static void shouldTakeWhatIsKnown(void) {
    HWS_CHECK(parse(sample) == 0);
    HWS_CHECK(strcmp(settings.carrier, "tcp") == 0 && strcmp(settings.broker, "tls://10.0.0.1:7656") == 0);
    HWS_CHECK(strcmp(settings.token, "key.secret") == 0 && strcmp(settings.ca, CERTIFICATE) == 0);
    HWS_CHECK(parse("[guest]\r\nbroker=\"a:1\"\r\ntoken=\"a.b\"") == 0 && settings.ca[0] == '\0');
    HWS_CHECK(parse("[guest]\nbroker='tls://a'\ntoken='a.b'\nca='''" CERTIFICATE CERTIFICATE "'''") == 0);
}

static void shouldRefuseWhatIsNot(void) {
    refuse("", "a table [guest]");
    refuse("broker = \"a\"\n[guest]\n", "under [guest]");
    refuse("[guest]\n[guest]\n", "the only table");
    refuse("[host]\n", "the only table");
    refuse("[guest]\nregion = \"/dev/mem\"\n", "must be one of carrier, broker, token, ca: \"region\"");
    refuse("[guest]\ntoken_file = \"/etc/shadow\"\n", "must be one of");
    refuse("[guest]\nbroker = \"a\"\nbroker = \"b\"\n", "broker must appear once");
    refuse("[guest]\nbroker = a\n", "quotes that are closed");
    refuse("[guest]\nbroker = \"a\n\"\n", "quotes that are closed");
    refuse("[guest]\nbroker = \"a\" b\n", "only a comment");
    refuse("[guest]\nbroker = \"\"\n", "must have 1 to");
    refuse("[guest]\nbroker = \"a\\u0022\"\n", "printable ASCII");
    refuse("[guest]\nbroker = 'a\"\ntoken=\"'\n", "closed");
    refuse("[guest]\nbroker = 'a\"b'\n", "printable ASCII");
    refuse("[guest]\nbroker = \"a\033[2J\"\n", "printable ASCII");
    refuse("[guest]\nbroker = \"a:1\"\n", "there is no token");
    refuse("[guest]\ntoken = \"a.b\"\n", "there is no broker");
    refuse("[guest]\nbroker = \"a\"\ntoken = \"a.b\"\nca = \"\"\"\n" CERTIFICATE "\"\"\"\n", "reached by tls://");
    refuse("[guest]\nbroker = \"tls://a\"\ntoken = \"a.b\"\nca = \"\"\"\nhello\n\"\"\"\n", "certificates in PEM");
    refuse("[guest]\nbroker = \"tls://a\"\ntoken = \"a.b\"\nca = \"\"\"\n-----BEGIN CERTIFICATE-----\n"
           "-----END CERTIFICATE-----\n\"\"\"\n",
           "certificates in PEM");
    refuse("[guest]\nbroker = \"tls://a\"\ntoken = \"a.b\"\nca = \"\"\"\n" CERTIFICATE "x\n\"\"\"\n",
           "certificates in PEM");
}

static void shouldBoundTheText(void) {
    static char text[HWS_SETTINGS_MAX_BYTES + 1];
    memset(text, '#', sizeof text);
    HWS_CHECK(hws_guest_settings_parse(text, sizeof text, &settings, error, sizeof error) == -1);
    HWS_CHECK(strstr(error, "at most 65536 bytes: 65537") != NULL);
    memset(text, 'a', sizeof text);
    memcpy(text, "[guest]\ntoken = \"", 17);
    HWS_CHECK(hws_guest_settings_parse(text, sizeof text - 1, &settings, error, sizeof error) == -1);
    text[500] = '"';
    text[501] = '\n';
    HWS_CHECK(hws_guest_settings_parse(text, 502, &settings, error, sizeof error) == -1);
    HWS_CHECK(strstr(error, "token must have 1 to 399 bytes: 483") != NULL);
    HWS_CHECK(hws_guest_settings_render(&settings, "x", "y", text, 30) == 0);
}

static uint64_t state = 0x2545f4914f6cdd1du;

static uint32_t next(uint32_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (state >> 33) % bound;
}

/* The reader of all programs accepts every text that we accept, with the same meaning, or gives a reason. */
static unsigned compare_with_programs(int file) {
    static char text[2048];
    hws_config_t config;
    size_t length = hws_guest_settings_render(&settings, "a test", "/run/hawser/ca.pem", text, sizeof text);
    HWS_CHECK(length > 0 && length == strlen(text));
    HWS_CHECK(ftruncate(file, 0) == 0 && pwrite(file, text, length, 0) == (ssize_t) length);
    if (hws_config_load(&config, error, sizeof error) != 0) {
        HWS_CHECK(error[0] != '\0' && strstr(error, "key = \"value\"") == NULL);
        return 0;
    }
    char token[sizeof config.key_id + sizeof config.secret + 1];
    snprintf(token, sizeof token, "%s.%s", config.key_id, config.secret);
    HWS_CHECK(strcmp(token, settings.token) == 0 && strstr(settings.broker, config.brokers[0].host) != NULL);
    HWS_CHECK(config.tls == (strncmp(settings.broker + strspn(settings.broker, " "), "tls://", 6) == 0));
    HWS_CHECK((config.ca_file[0] != '\0') == (settings.ca[0] != '\0') && config.region[0] == '\0');
    return 1;
}

static void shouldTakeEveryDamage(void) {
    static const char *const pieces[] = {"\"", "'",      "[guest]", "=", "\n", "#",
                                         "\\", "\"\"\"", "token",   ".", "\r", "\""};
    int file = memfd_create("guest.toml", 0);
    char text[sizeof sample + 256], path[64];
    unsigned taken = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    setenv("HAWSER_CONFIG", path, 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t length = sizeof sample - 1;
        memcpy(text, sample, length);
        for (uint32_t damages = 1 + next(4); damages > 0 && length > 1; damages--) {
            uint32_t at = next((uint32_t) length);
            if (next(3) == 0) {
                text[at] = (char) next(256);
            } else if (next(3) == 0) {
                length = at + 1;
            } else {
                const char *piece = pieces[next(sizeof pieces / sizeof *pieces)];
                size_t more = strlen(piece);
                if (length + more < sizeof text) {
                    memmove(text + at + more, text + at, length - at);
                    memcpy(text + at, piece, more);
                    length += more;
                }
            }
        }
        /* In a block of its exact length, so that the sanitizer detects a read beyond it. */
        char *exact = malloc(length);
        memcpy(exact, text, length);
        error[0] = '\0';
        if (hws_guest_settings_parse(exact, length, &settings, error, sizeof error) == 0
            && hws_guest_settings_check(&settings, error, sizeof error) == 0) {
            taken += compare_with_programs(file);
        } else {
            HWS_CHECK(error[0] != '\0');
        }
        free(exact);
    }
    HWS_CHECK(taken > ROUNDS / 50 && taken < ROUNDS);
    close(file);
}

int main(void) {
    static const char *const variables[] = {"HAWSER_CARRIER",           "HAWSER_REGION", "HAWSER_BROKER",
                                            "HAWSER_CA_FILE",           "HAWSER_TOKEN",  "HAWSER_TOKEN_FILE",
                                            "HAWSER_CONNECT_TIMEOUT_MS"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        unsetenv(variables[i]);
    }
    HWS_RUN(shouldTakeWhatIsKnown);
    HWS_RUN(shouldRefuseWhatIsNot);
    HWS_RUN(shouldBoundTheText);
    HWS_RUN(shouldTakeEveryDamage);
    return 0;
}
