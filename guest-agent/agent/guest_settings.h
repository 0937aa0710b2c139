/*
 * What a hypervisor tells its guest about the vGPU: the [guest] table of a small TOML file, or the same as single texts.
 * It becomes a file that every program of the guest reads, so nothing is taken over that is not known and looked at.
 */
#ifndef HWS_GUEST_SETTINGS_H
#define HWS_GUEST_SETTINGS_H

#include <stddef.h>

#define HWS_SETTINGS_MAX_BYTES 65536 /* of the whole text; hypervisor-chosen, sizes a buffer */

typedef struct hws_guest_settings {
    char carrier[16];  /* "" for none, as with the others */
    char broker[300];  /* host:port or tls://host:port */
    char token[400];   /* keyId.secret */
    char ca[32768];    /* PEM of the authorities to trust */
} hws_guest_settings_t;

/*
 * Takes a text apart: [guest] with carrier, broker, token, ca (a multi-line string of three quotes), comments and empty
 * lines, no escapes, nothing else. Returns 0, or -1 with a sentence; what comes out may still lack something.
 */
int hws_guest_settings_parse(const char *text, size_t length, hws_guest_settings_t *settings_p, char *error_p,
                             size_t error_capacity);

/* Sets one of carrier, broker, token, ca. Returns 0, or -1 with a sentence: not known, twice, too long, no clean text. */
int hws_guest_settings_set(hws_guest_settings_t *settings, const char *key, const char *value, size_t length,
                           char *error_p, size_t error_capacity);

/* Looks at them together: a broker and a token, authorities only with TLS and as certificates. 0, or -1 with a sentence. */
int hws_guest_settings_check(const hws_guest_settings_t *settings, char *error_p, size_t error_capacity);

/*
 * Writes guest.toml's text; ca_file is where the authorities will lie. Returns its length, or 0 when capacity is too
 * small.
 */
size_t hws_guest_settings_render(const hws_guest_settings_t *settings, const char *from, const char *ca_file,
                                 char *text_p, size_t capacity);

#endif
