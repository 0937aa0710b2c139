/*
 * The guest's configuration: its vGPU and its token. The environment comes first: HAWSER_CARRIER, HAWSER_REGION,
 * HAWSER_BROKER, HAWSER_TOKEN or HAWSER_TOKEN_FILE, HAWSER_CA_FILE, HAWSER_CONNECT_TIMEOUT_MS, and HAWSER_RDMA_DEVICE
 * with the other settings of RDMA. The [guest] table of /etc/hawser/guest.toml supplies the rest. If that file names no broker, /run/hawser/guest.toml follows. HAWSER_CONFIG
 * names another file instead of both. A set-uid program ignores the environment.
 */
#ifndef HWS_CONFIG_H
#define HWS_CONFIG_H

#include "hws_address.h"
#include "rdma/hws_rdma.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HWS_DEFAULT_PORT "7654"
#define HWS_DEFAULT_TLS_PORT "7656"
#define HWS_DEFAULT_CONNECT_TIMEOUT_MS 5000u

typedef enum hws_carrier_choice {
    HWS_CARRIER_AUTO, /* a region of shared memory if there is one, else the configured broker, by RDMA if possible */
    HWS_CARRIER_SHM,
    HWS_CARRIER_TCP,
    HWS_CARRIER_RDMA,
} hws_carrier_choice_t;

typedef struct hws_config {
    hws_carrier_choice_t carrier;
    char region[512]; /* file of the region; "": search for an ivshmem device */
    char sysfs[256];  /* where devices are searched: /sys, or HAWSER_SYSFS for tests */
    /* In the order of the attempts. hws_broker_open() leaves only the session's broker. */
    hws_address_t brokers[HWS_MAX_BROKERS];
    unsigned broker_count; /* 0 when `missing` has a message */
    bool tls;              /* the brokers read tls://... */
    hws_address_t reached; /* the broker that has answered hws_status_ask(); "" for none */
    char ca_file[512];     /* authorities to trust; "": those of the machine */
    char key_id[128];
    char secret[256];
    char from[512];              /* where the broker is set, for people: "HAWSER_BROKER", a file; "" for none */
    char missing[256];           /* the setting that TCP and RDMA still lack; "" for none */
    char rdma_device[64];        /* "": the first with an active port */
    hws_rdma_options_t rdma;     /* without the device */
    uint32_t connect_timeout_ms; /* 1..600000 */
} hws_config_t;

/*
 * Reads the configuration. Returns 0, or -1 with a message in error_p that names the setting: it is malformed, or
 * HWS_CARRIER_TCP or _RDMA lacks its broker or token. A token reads keyId.secret, both of letters, digits, "_" and "-".
 */
int hws_config_load(hws_config_t *config_p, char *error_p, size_t error_capacity);

/* Whether a region of shared memory may carry the session. */
static inline bool hws_config_takes_region(const hws_config_t *config) {
    return config->carrier == HWS_CARRIER_AUTO || config->carrier == HWS_CARRIER_SHM;
}

#endif
