/* Parses and checks the settings of a hypervisor. */
#include "guest_settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BEGIN_CERTIFICATE "-----BEGIN CERTIFICATE-----\n"
#define END_CERTIFICATE "-----END CERTIFICATE-----\n"

typedef struct hws_text {
    const char *at;
    const char *end;
    unsigned line;
} hws_text_t;

static int refuse(char *error_p, size_t capacity, const hws_text_t *text, const char *rule) {
    snprintf(error_p, capacity, "%s: line %u", rule, text->line);
    return -1;
}

int hws_guest_settings_set(hws_guest_settings_t *settings, const char *key, const char *value, size_t length,
                           char *error_p, size_t error_capacity) {
    const struct {
        const char *name;
        char *target;
        size_t capacity;
        bool lines;
    } known[] = {
        {"carrier", settings->carrier, sizeof settings->carrier, false},
        {"broker", settings->broker, sizeof settings->broker, false},
        {"token", settings->token, sizeof settings->token, false},
        {"ca", settings->ca, sizeof settings->ca, true},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(key, known[i].name) != 0) {
            continue;
        }
        if (known[i].target[0] != '\0') {
            snprintf(error_p, error_capacity, "%s must appear once", key);
            return -1;
        }
        if (length == 0 || length >= known[i].capacity) {
            snprintf(error_p, error_capacity, "%s must have 1 to %zu bytes: %zu", key, known[i].capacity - 1, length);
            return -1;
        }
        for (size_t j = 0; j < length; j++) {
            unsigned char c = (unsigned char) value[j];
            /* Characters that a quoted string of the file cannot hold, and control characters for a terminal. */
            if ((c < ' ' && !(known[i].lines && c == '\n')) || c > '~' || c == '"' || c == '\\') {
                snprintf(error_p, error_capacity, "%s must be printable ASCII without quotes and backslashes", key);
                return -1;
            }
        }
        memcpy(known[i].target, value, length);
        known[i].target[length] = '\0';
        return 0;
    }
    snprintf(error_p, error_capacity, "a setting must be one of carrier, broker, token, ca: \"%.32s\"", key);
    return -1;
}

static void skip_blanks(hws_text_t *text) {
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t')) {
        text->at++;
    }
}

static bool begins_with(const hws_text_t *text, const char *word) {
    size_t length = strlen(word);
    return (size_t) (text->end - text->at) >= length && memcmp(text->at, word, length) == 0;
}

/* Only blanks, a comment and the line's end may follow. */
static bool end_line(hws_text_t *text) {
    skip_blanks(text);
    if (text->at < text->end && *text->at == '#') {
        while (text->at < text->end && *text->at != '\n') {
            text->at++;
        }
    }
    if (begins_with(text, "\r\n")) {
        text->at++;
    }
    if (text->at < text->end) {
        if (*text->at != '\n') {
            return false;
        }
        text->at++;
        text->line++;
    }
    return true;
}

/* Finds a quoted string: its beginning and its length. Returns false when there is none. */
static bool take_string(hws_text_t *text, const char **value_p, size_t *length_p) {
    const char *close;
    if (begins_with(text, "\"\"\"") || begins_with(text, "'''")) {
        close = *text->at == '"' ? "\"\"\"" : "'''";
        text->at += 3;
        if (begins_with(text, "\n")) { /* TOML ignores it */
            text->at++;
            text->line++;
        }
    } else if (begins_with(text, "\"") || begins_with(text, "'")) {
        close = *text->at == '"' ? "\"" : "'";
        text->at++;
    } else {
        return false;
    }
    *value_p = text->at;
    for (; text->at < text->end; text->at++) {
        if (begins_with(text, close)) {
            *length_p = (size_t) (text->at - *value_p);
            text->at += strlen(close);
            return true;
        }
        if (*text->at == '\n') {
            if (close[1] == '\0') {
                return false;
            }
            text->line++;
        }
    }
    return false;
}

static int take_setting(hws_text_t *text, hws_guest_settings_t *settings, char *error_p, size_t error_capacity) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    char key[32];
    size_t length = 0;
    while (text->at < text->end && length < sizeof key - 1 && memchr(letters, *text->at, sizeof letters - 1) != NULL) {
        key[length++] = *text->at++;
    }
    key[length] = '\0';
    skip_blanks(text);
    if (length == 0 || !begins_with(text, "=")) {
        return refuse(error_p, error_capacity, text, "a line of [guest] must read key = \"value\"");
    }
    text->at++;
    skip_blanks(text);
    const char *value;
    size_t value_length;
    if (!take_string(text, &value, &value_length)) {
        return refuse(error_p, error_capacity, text, "a value must stand in quotes that are closed");
    }
    if (hws_guest_settings_set(settings, key, value, value_length, error_p, error_capacity) != 0) {
        return -1;
    }
    return end_line(text) ? 0 : refuse(error_p, error_capacity, text, "only a comment may follow a value");
}

int hws_guest_settings_parse(const char *bytes, size_t length, hws_guest_settings_t *settings_p, char *error_p,
                             size_t error_capacity) {
    hws_text_t text = {.at = bytes, .end = bytes + length, .line = 1};
    bool guest = false;
    memset(settings_p, 0, sizeof *settings_p);
    if (length > HWS_SETTINGS_MAX_BYTES) {
        snprintf(error_p, error_capacity, "the settings must have at most %d bytes: %zu", HWS_SETTINGS_MAX_BYTES,
                 length);
        return -1;
    }
    while (text.at < text.end) {
        skip_blanks(&text);
        if (begins_with(&text, "[")) {
            if (guest || !begins_with(&text, "[guest]")) {
                return refuse(error_p, error_capacity, &text, "[guest] must be the only table, once");
            }
            guest = true;
            text.at += strlen("[guest]");
        } else if (text.at < text.end && strchr("#\r\n", *text.at) == NULL) {
            if (!guest) {
                return refuse(error_p, error_capacity, &text, "settings must stand under [guest]");
            }
            if (take_setting(&text, settings_p, error_p, error_capacity) != 0) {
                return -1;
            }
            continue;
        }
        if (!end_line(&text)) {
            return refuse(error_p, error_capacity, &text, "a line of [guest] must read key = \"value\"");
        }
    }
    if (!guest) {
        return refuse(error_p, error_capacity, &text, "there must be a table [guest]");
    }
    return 0;
}

/* Whether the text is one or more certificates with base64 lines and nothing between them. */
static bool are_certificates(const char *at) {
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    do {
        if (strncmp(at, BEGIN_CERTIFICATE, strlen(BEGIN_CERTIFICATE)) != 0) {
            return false;
        }
        at += strlen(BEGIN_CERTIFICATE);
        unsigned lines = 0;
        for (size_t length; (length = strspn(at, base64)) > 0 && at[length] == '\n'; lines++) {
            at += length + 1;
        }
        if (lines == 0 || strncmp(at, END_CERTIFICATE, strlen(END_CERTIFICATE) - 1) != 0) {
            return false;
        }
        at += strlen(END_CERTIFICATE) - 1;
        at += *at == '\n' ? 1 : 0;
    } while (*at != '\0');
    return true;
}

int hws_guest_settings_check(const hws_guest_settings_t *settings, char *error_p, size_t error_capacity) {
    if (settings->broker[0] == '\0' || settings->token[0] == '\0') {
        snprintf(error_p, error_capacity, "a broker and a token must both be given: there is no %s",
                 settings->broker[0] == '\0' ? "broker" : "token");
        return -1;
    }
    if (settings->ca[0] == '\0') {
        return 0;
    }
    if (strncmp(settings->broker, "tls://", 6) != 0) {
        snprintf(error_p, error_capacity, "ca may only be set for a broker that is reached by tls://");
        return -1;
    }
    if (!are_certificates(settings->ca)) {
        snprintf(error_p, error_capacity, "ca must be certificates in PEM, and nothing else");
        return -1;
    }
    return 0;
}

static int add(char *text, size_t capacity, size_t *length, const char *key, const char *value) {
    if (value[0] == '\0') {
        return 0;
    }
    int added = snprintf(text + *length, capacity - *length, "%s = \"%s\"\n", key, value);
    if (added < 0 || (size_t) added >= capacity - *length) {
        return -1;
    }
    *length += (size_t) added;
    return 0;
}

size_t hws_guest_settings_render(const hws_guest_settings_t *settings, const char *from, const char *ca_file,
                                 char *text_p, size_t capacity) {
    int begun =
        snprintf(text_p, capacity, "# Written by `hawser setup` from %s; gone with the next start.\n[guest]\n", from);
    if (begun < 0 || (size_t) begun >= capacity) {
        return 0;
    }
    size_t length = (size_t) begun;
    return add(text_p, capacity, &length, "carrier", settings->carrier) == 0
            && add(text_p, capacity, &length, "broker", settings->broker) == 0
            && add(text_p, capacity, &length, "ca_file", settings->ca[0] == '\0' ? "" : ca_file) == 0
            && add(text_p, capacity, &length, "token", settings->token) == 0
        ? length
        : 0;
}
