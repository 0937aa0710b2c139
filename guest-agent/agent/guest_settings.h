/*
 * The vGPU's settings from a hypervisor: the [guest] table of a small TOML file, or the same as single texts. They
 * become a file that every program of the guest reads. So only known and checked settings are accepted.
 */
#ifndef HWS_GUEST_SETTINGS_H
#define HWS_GUEST_SETTINGS_H

#include <stddef.h>

#define HWS_SETTINGS_MAX_BYTES 65536 /* of the whole text; hypervisor-chosen, sizes a buffer */

typedef struct hws_guest_settings {
    char carrier[16]; /* "" for none, as for the others */
    char broker[900]; /* host:port or tls://host:port; several with commas between them */
    char token[400];  /* keyId.secret */
    char ca[32768];   /* PEM of the authorities to trust */
} hws_guest_settings_t;

/*
 * Parses a text: [guest] with carrier, broker, token, ca (a multi-line string of three quotes), comments and empty
 * lines, no escapes, nothing else. Returns 0, or -1 with a message. Required settings may still be missing.
 */
int hws_guest_settings_parse(const char *text, size_t length, hws_guest_settings_t *settings_p, char *error_p,
                             size_t error_capacity);

/*
 * Sets one of carrier, broker, token, ca. Returns 0, or -1 with a message: unknown, set twice, too long, or with
 * invalid characters.
 */
int hws_guest_settings_set(hws_guest_settings_t *settings, const char *key, const char *value, size_t length,
                           char *error_p, size_t error_capacity);

/*
 * Checks all settings together: a broker and a token; authorities only with TLS, as certificates. Returns 0, or -1 with
 * a message.
 */
int hws_guest_settings_check(const hws_guest_settings_t *settings, char *error_p, size_t error_capacity);

/*
 * Writes guest.toml's text; ca_file is the later path of the authorities. Returns its length, or 0 when capacity is too
 * small.
 */
size_t hws_guest_settings_render(const hws_guest_settings_t *settings, const char *from, const char *ca_file,
                                 char *text_p, size_t capacity);

#endif
