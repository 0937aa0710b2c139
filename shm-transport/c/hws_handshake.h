/*
 * The first records of a session (architecture, section 2.3): HELLO, CHALLENGE, PROOF, WELCOME or REFUSED; or
 * ASK_STATUS instead of PROOF, and STATUS.
 * The token's secret never travels. A recorded proof opens no other connection. The broker proves itself in CHALLENGE:
 * only the token's broker can let this guest in.
 */
#ifndef HWS_HANDSHAKE_H
#define HWS_HANDSHAKE_H

#include "hws_carrier.h"
#include "hws_config.h"

#include <stddef.h>
#include <stdint.h>

/* What the worker said in WELCOME, checked. */
typedef struct hws_welcome {
    uint32_t device_count;        /* 1..HWS_MAX_DEVICES */
    uint64_t session_id;
    uint64_t credit_window_bytes; /* at least one record of the largest size */
    uint32_t max_record_bytes;    /* at most HWS_MAX_RECORD_BYTES */
    uint32_t max_bulk_bytes;      /* at most HWS_MAX_BULK_BYTES, a multiple of 8 */
    uint64_t next_sequence;       /* of the first record that this end sends after the handshake */
} hws_welcome_t;

/* How many times the broker's limit the worker has, because one may have to be started. */
#define HWS_WORKER_START_FACTOR 6
/* More devices than a machine has: sizes the table of their properties. */
#define HWS_MAX_DEVICES 64

/*
 * Runs the handshake on a fresh carrier. The broker has config->connect_timeout_ms for each of its records, the worker
 * six times as long, because one may have to be started. Returns 0, or -1 with a sentence in error_p.
 */
int hws_handshake(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                  hws_welcome_t *welcome_p, char *error_p, size_t error_capacity);

/*
 * Asks for the status of the token's vGPU on a fresh carrier, which is of no use afterwards. text_p receives at most
 * capacity - 1 bytes and a NUL. Returns 0, or -1 with a sentence in error_p.
 */
int hws_handshake_ask_status(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                             char *text_p, size_t capacity, char *error_p, size_t error_capacity);

/*
 * The last part alone, for a carrier that has admitted us otherwise: waits for the worker's WELCOME, timeout_ms long.
 */
int hws_handshake_await_welcome(hws_carrier_t *carrier, uint32_t timeout_ms, hws_welcome_t *welcome_p, char *error_p,
                                size_t error_capacity);

#endif
