#include "hws_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PATH "/etc/hawser/guest.toml"
#define SETUP_PATH "/run/hawser/guest.toml" /* `hawser setup` writes the hypervisor's settings there */
#define MAX_LINES 10000                     /* for an endless file, such as a device */
#define DEFAULT_SYSFS "/sys"
#define MAX_CONNECT_TIMEOUT_MS 600000ul

#define HWS_TEXT_OF(number) HWS_TEXT_OF_VALUE(number)
#define HWS_TEXT_OF_VALUE(value) #value

/* The settings' texts as found, before parsing. */
typedef struct hws_settings {
    char carrier[16];
    char region[512];
    char broker[900]; /* a list; a line of the file must hold it */
    char ca_file[512];
    char token[400];
    char token_file[512];
    char from[512]; /* where the broker is set */
    char rdma_device[64];
    char rdma[6][12]; /* the texts of rdma_numbers */
} hws_settings_t;

/* The numbers of RDMA, by their names in the environment and in the file. */
static const struct {
    const char *name, *key;
    unsigned long most;
    size_t offset;
} rdma_numbers[] = {
    {"HAWSER_RDMA_PORT", "rdma_port", 255, offsetof(hws_rdma_options_t, port)},
    {"HAWSER_RDMA_GID_INDEX", "rdma_gid_index", 255, offsetof(hws_rdma_options_t, gid_index)},
    {"HAWSER_RDMA_PARTITION", "rdma_partition", 65535, offsetof(hws_rdma_options_t, partition)},
    {"HAWSER_RDMA_SERVICE_LEVEL", "rdma_service_level", 15, offsetof(hws_rdma_options_t, service_level)},
    {"HAWSER_RDMA_TRAFFIC_CLASS", "rdma_traffic_class", 255, offsetof(hws_rdma_options_t, traffic_class)},
    {"HAWSER_RDMA_RETRY_MS", "rdma_retry_ms", 600000, offsetof(hws_rdma_options_t, retry_ms)},
};

#define RDMA_NUMBERS (sizeof rdma_numbers / sizeof rdma_numbers[0])

_Static_assert(RDMA_NUMBERS == sizeof(((hws_settings_t *) 0)->rdma) / sizeof(((hws_settings_t *) 0)->rdma[0]),
               "a text for each number");

static int copy_text(char *target, size_t capacity, const char *text) {
    size_t length = strlen(text);
    if (length >= capacity) {
        return -1;
    }
    memcpy(target, text, length + 1);
    return 0;
}

static char *trim(char *text) {
    while (isspace((unsigned char) *text)) {
        text++;
    }
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char) text[length - 1])) {
        text[--length] = '\0';
    }
    return text;
}

/* Stores a value of the file: "basic" or 'literal' without escapes, which broker names and tokens never need. */
static int take_value(hws_settings_t *settings, const char *key, char *value) {
    char quote = *value;
    char *end = quote == '"' || quote == '\'' ? strchr(value + 1, quote) : NULL;
    if (end == NULL || memchr(value, '\\', (size_t) (end - value)) != NULL) {
        return -1;
    }
    *end = '\0';
    value++;
    char *rest = trim(end + 1);
    if (*rest != '\0' && *rest != '#') {
        return -1;
    }
    if (strcmp(key, "carrier") == 0) {
        return settings->carrier[0] ? 0 : copy_text(settings->carrier, sizeof settings->carrier, value);
    }
    if (strcmp(key, "region") == 0) {
        return settings->region[0] ? 0 : copy_text(settings->region, sizeof settings->region, value);
    }
    if (strcmp(key, "broker") == 0) {
        return settings->broker[0] ? 0 : copy_text(settings->broker, sizeof settings->broker, value);
    }
    if (strcmp(key, "ca_file") == 0) {
        return settings->ca_file[0] ? 0 : copy_text(settings->ca_file, sizeof settings->ca_file, value);
    }
    if (strcmp(key, "token") == 0) {
        return settings->token[0] ? 0 : copy_text(settings->token, sizeof settings->token, value);
    }
    if (strcmp(key, "token_file") == 0) {
        return settings->token_file[0] ? 0 : copy_text(settings->token_file, sizeof settings->token_file, value);
    }
    if (strcmp(key, "rdma_device") == 0) {
        return settings->rdma_device[0] ? 0 : copy_text(settings->rdma_device, sizeof settings->rdma_device, value);
    }
    for (size_t i = 0; i < RDMA_NUMBERS; i++) {
        if (strcmp(key, rdma_numbers[i].key) == 0) {
            return settings->rdma[i][0] ? 0 : copy_text(settings->rdma[i], sizeof settings->rdma[i], value);
        }
    }
    return 0; /* keys of newer versions */
}

static int read_file(hws_settings_t *settings, const char *path, bool required, char *error, size_t capacity) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        if (!required && errno == ENOENT) {
            return 0;
        }
        snprintf(error, capacity, "the configuration cannot be read: %s: %s", path, strerror(errno));
        return -1;
    }
    char text[1024];
    bool guest = false;
    bool token_known = settings->token[0] || settings->token_file[0];
    hws_settings_t found = *settings;
    int number = 0, rc = 0;
    while (rc == 0 && fgets(text, sizeof text, file) != NULL) {
        if (strlen(text) == sizeof text - 1 || ++number > MAX_LINES) {
            fclose(file);
            snprintf(error, capacity, "a configuration must have at most %d lines of at most %zu bytes: %s:%d",
                     MAX_LINES, sizeof text - 2, path, number);
            return -1;
        }
        char *line = trim(text);
        if (*line == '[') {
            guest = strncmp(line, "[guest]", 7) == 0;
        } else if (guest && *line != '\0' && *line != '#') {
            char *equals = strchr(line, '=');
            if (equals == NULL) {
                rc = -1;
            } else {
                *equals = '\0';
                rc = take_value(&found, trim(line), trim(equals + 1));
            }
        }
    }
    fclose(file);
    if (rc != 0) {
        snprintf(error, capacity, "a line of [guest] must read key = \"value\": %s:%d", path, number);
        return -1;
    }
    if (token_known) {
        /* A token of the environment replaces token and token_file of the file. */
        memcpy(found.token, settings->token, sizeof found.token);
        memcpy(found.token_file, settings->token_file, sizeof found.token_file);
    }
    if (found.broker[0] && found.from[0] == '\0') {
        snprintf(found.from, sizeof found.from, "%s", path);
    }
    *settings = found;
    return 0;
}

/*
 * Reads the file that HAWSER_CONFIG names and no other. Otherwise reads the administrator's file, then the hypervisor's
 * if the first names neither broker nor region. The hypervisor's token belongs to its own broker.
 */
static int read_files(hws_settings_t *settings, char *error, size_t capacity) {
    const char *path = secure_getenv("HAWSER_CONFIG");
    if (path != NULL) {
        return read_file(settings, path, true, error, capacity);
    }
    if (read_file(settings, DEFAULT_PATH, false, error, capacity) != 0) {
        return -1;
    }
    return settings->broker[0] || settings->region[0] ? 0 : read_file(settings, SETUP_PATH, false, error, capacity);
}

static int read_token_file(hws_settings_t *settings, char *error, size_t capacity) {
    FILE *file = fopen(settings->token_file, "re");
    if (file == NULL) {
        snprintf(error, capacity, "the token file cannot be read: %s: %s", settings->token_file, strerror(errno));
        return -1;
    }
    char line[sizeof settings->token];
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    if (!read) {
        snprintf(error, capacity, "the token file is empty: %s", settings->token_file);
        return -1;
    }
    return copy_text(settings->token, sizeof settings->token, trim(line));
}

static bool is_token_text(const char *text) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    return *text != '\0' && strspn(text, allowed) == strlen(text);
}

static int split_token(hws_config_t *config, char *token) {
    char *dot = strchr(token, '.');
    if (dot == NULL) {
        return -1;
    }
    *dot = '\0';
    return is_token_text(token) && is_token_text(dot + 1)
            && copy_text(config->key_id, sizeof config->key_id, token) == 0
            && copy_text(config->secret, sizeof config->secret, dot + 1) == 0
        ? 0
        : -1;
}

/*
 * Takes a list of brokers: addresses with commas and blanks between them, each after an optional tls:// or tcp:// (the
 * default). One way for all: else a broker that does not answer would turn TLS off. Returns NULL, or the rule that the
 * list violates.
 */
static const char *split_brokers(hws_config_t *config, char *list) {
    for (char *next = list; next != NULL; config->broker_count++) {
        char *text = next, *comma = strchr(text, ',');
        next = comma == NULL ? NULL : comma + 1;
        if (comma != NULL) {
            *comma = '\0';
        }
        text = trim(text);
        bool tls = strncmp(text, "tls://", 6) == 0;
        text += tls || strncmp(text, "tcp://", 6) == 0 ? 6 : 0;
        if (config->broker_count == HWS_MAX_BROKERS) {
            return "a list must have at most " HWS_TEXT_OF(HWS_MAX_BROKERS) " brokers";
        }
        if (config->broker_count > 0 && tls != config->tls) {
            return "the brokers of a list must all have tls://, or none";
        }
        config->tls = tls;
        if (hws_address_split(text, tls ? HWS_DEFAULT_TLS_PORT : HWS_DEFAULT_PORT,
                              &config->brokers[config->broker_count])
            != 0) {
            return "a broker must read host:port, tls://host:port or [v6 address]:port";
        }
    }
    return NULL;
}

static int take_environment(const char *name, char *target, size_t capacity, char *error, size_t error_capacity) {
    /* secure_getenv: another user must not lead a set-uid program to a broker of their own. */
    const char *value = secure_getenv(name);
    if (value != NULL && copy_text(target, capacity, value) != 0) {
        snprintf(error, error_capacity, "%s is too long: at most %zu bytes", name, capacity - 1);
        return -1;
    }
    return 0;
}

static int take_carrier(hws_config_t *config, const char *name, char *error, size_t capacity) {
    static const char *const names[] = {
        [HWS_CARRIER_AUTO] = "auto", [HWS_CARRIER_SHM] = "shm", [HWS_CARRIER_TCP] = "tcp", [HWS_CARRIER_RDMA] = "rdma"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (*name == '\0' || strcmp(name, names[i]) == 0) {
            config->carrier = (hws_carrier_choice_t) i;
            return 0;
        }
    }
    snprintf(error, capacity, "a carrier must be auto, shm, tcp or rdma: \"%s\"", name);
    return -1;
}

/* Takes the numbers of RDMA, which have defaults. */
static int take_rdma(hws_config_t *config, const hws_settings_t *settings, char *error, size_t capacity) {
    config->rdma.gid_index = -1;
    for (size_t i = 0; i < RDMA_NUMBERS; i++) {
        const char *text = settings->rdma[i];
        unsigned long value = strtoul(text, NULL, 10);
        if (*text == '\0') {
            continue;
        }
        if (strspn(text, "0123456789") != strlen(text) || value > rdma_numbers[i].most) {
            snprintf(error, capacity, "%s must be 0..%lu: \"%s\"", rdma_numbers[i].name, rdma_numbers[i].most, text);
            return -1;
        }
        uint32_t number = (uint32_t) value;
        memcpy((char *) &config->rdma + rdma_numbers[i].offset, &number, sizeof number);
    }
    return copy_text(config->rdma_device, sizeof config->rdma_device, settings->rdma_device);
}

static int take_timeout(hws_config_t *config, char *error, size_t capacity) {
    const char *timeout = secure_getenv("HAWSER_CONNECT_TIMEOUT_MS");
    if (timeout == NULL) {
        return 0;
    }
    char *end;
    unsigned long value = strtoul(timeout, &end, 10);
    if (end == timeout || *end != '\0' || value == 0 || value > MAX_CONNECT_TIMEOUT_MS) {
        snprintf(error, capacity, "HAWSER_CONNECT_TIMEOUT_MS must be 1..%lu: \"%s\"", MAX_CONNECT_TIMEOUT_MS, timeout);
        return -1;
    }
    config->connect_timeout_ms = (uint32_t) value;
    return 0;
}

/* Takes broker and token. A process whose vGPU is a region needs neither. */
static int take_broker(hws_config_t *config, hws_settings_t *settings, char *error, size_t capacity) {
    if (settings->broker[0] == '\0') {
        snprintf(config->missing, sizeof config->missing,
                 "no broker is configured: set HAWSER_BROKER=host:port or broker under [guest] in " DEFAULT_PATH);
        return 0;
    }
    if (settings->token[0] == '\0' && settings->token_file[0] != '\0' && config->carrier != HWS_CARRIER_SHM
        && read_token_file(settings, error, capacity) != 0) {
        return -1;
    }
    if (settings->token[0] == '\0') {
        snprintf(
            config->missing, sizeof config->missing,
            "no token is configured: set HAWSER_TOKEN, HAWSER_TOKEN_FILE, or token under [guest] in " DEFAULT_PATH);
        return 0;
    }
    if (split_token(config, settings->token) != 0) {
        snprintf(error, capacity, "a token must read keyId.secret, both of letters, digits, _ and -");
        return -1;
    }
    const char *rule = split_brokers(config, settings->broker);
    if (rule != NULL) {
        snprintf(error, capacity, "%s", rule);
        return -1;
    }
    return 0;
}

int hws_config_load(hws_config_t *config_p, char *error_p, size_t error_capacity) {
    hws_settings_t settings = {0};
    hws_config_t config = {.connect_timeout_ms = HWS_DEFAULT_CONNECT_TIMEOUT_MS, .sysfs = DEFAULT_SYSFS};
    const struct {
        const char *name;
        char *target;
        size_t capacity;
    } variables[] = {
        {"HAWSER_CARRIER", settings.carrier, sizeof settings.carrier},
        {"HAWSER_REGION", settings.region, sizeof settings.region},
        {"HAWSER_BROKER", settings.broker, sizeof settings.broker},
        {"HAWSER_CA_FILE", settings.ca_file, sizeof settings.ca_file},
        {"HAWSER_TOKEN", settings.token, sizeof settings.token},
        {"HAWSER_TOKEN_FILE", settings.token_file, sizeof settings.token_file},
        {"HAWSER_SYSFS", config.sysfs, sizeof config.sysfs},
        {"HAWSER_RDMA_DEVICE", settings.rdma_device, sizeof settings.rdma_device},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (take_environment(variables[i].name, variables[i].target, variables[i].capacity, error_p, error_capacity)) {
            return -1;
        }
    }
    for (size_t i = 0; i < RDMA_NUMBERS; i++) {
        if (take_environment(rdma_numbers[i].name, settings.rdma[i], sizeof settings.rdma[i], error_p,
                             error_capacity)) {
            return -1;
        }
    }
    if (settings.broker[0]) {
        snprintf(settings.from, sizeof settings.from, "HAWSER_BROKER");
    }
    if (take_timeout(&config, error_p, error_capacity) != 0 || read_files(&settings, error_p, error_capacity) != 0
        || take_carrier(&config, settings.carrier, error_p, error_capacity) != 0
        || take_rdma(&config, &settings, error_p, error_capacity) != 0
        || take_broker(&config, &settings, error_p, error_capacity) != 0) {
        return -1;
    }
    if ((config.carrier == HWS_CARRIER_TCP || config.carrier == HWS_CARRIER_RDMA) && config.missing[0] != '\0') {
        snprintf(error_p, error_capacity, "%s", config.missing);
        return -1;
    }
    memcpy(config.from, settings.from, sizeof config.from);
    memcpy(config.region, settings.region, sizeof config.region);
    memcpy(config.ca_file, settings.ca_file, sizeof config.ca_file);
    *config_p = config;
    return 0;
}
