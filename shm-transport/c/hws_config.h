/*
 * Where the broker is and who we are, from HAWSER_BROKER, HAWSER_TOKEN or HAWSER_TOKEN_FILE, HAWSER_CONNECT_TIMEOUT_MS;
 * what they leave open, from the [guest] table of /etc/hawser/guest.toml (HAWSER_CONFIG names another file).
 */
#ifndef HWS_CONFIG_H
#define HWS_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#define HWS_DEFAULT_PORT "7654"
#define HWS_DEFAULT_CONNECT_TIMEOUT_MS 5000u

typedef struct hws_config {
    char host[256];
    char port[8];
    char key_id[128];
    char secret[256];
    uint32_t connect_timeout_ms; /* 1..600000 */
} hws_config_t;

/*
 * Reads the configuration. Returns 0, or -1 with a sentence in error_p that says what to set.
 * A token reads keyId.secret, both of letters, digits, "_" and "-".
 */
int hws_config_load(hws_config_t *config_p, char *error_p, size_t error_capacity);

#endif
