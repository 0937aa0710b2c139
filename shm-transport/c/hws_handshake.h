/*
 * The first records of a session (wire.md, "Handshake"): HELLO, CHALLENGE, PROOF, WELCOME or REFUSED; OPEN instead of
 * PROOF, and ANSWER after WELCOME; or ASK_STATUS instead of PROOF, and STATUS. Further connections of a session send JOIN
 * or RESUME instead of PROOF, and get JOINED or PARKED. The token's secret never travels. A recorded proof opens no other
 * connection. The broker proves itself in CHALLENGE: only the token's broker can admit this guest.
 */
#ifndef HWS_HANDSHAKE_H
#define HWS_HANDSHAKE_H

#include "hws_carrier.h"
#include "hws_config.h"
#include "hws_layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The contents of the worker's WELCOME, checked. */
typedef struct hws_welcome {
    uint32_t device_count; /* 1..HWS_MAX_DEVICES */
    uint64_t session_id;
    uint64_t credit_window_bytes; /* at least one record of the largest size */
    uint32_t max_record_bytes;    /* at most HWS_MAX_RECORD_BYTES */
    uint32_t max_bulk_bytes;      /* at most HWS_MAX_BULK_BYTES, a multiple of 8 */
    uint64_t next_sequence;       /* sequence of the first record that this end sends after the handshake */
    uint8_t session_nonce[HWS_NONCE_CLIENT_BYTES]; /* of this end's HELLO, by which connections join; TCP only */
    bool may_leave;                                /* the worker may send LEAVE to a guest that has sent FOLLOWS */
} hws_welcome_t;

/* The worker gets this many times the broker's limit, because the broker may have to start a worker. */
#define HWS_WORKER_START_FACTOR 6
/* More devices than any machine has. Sizes the table of their properties. */
#define HWS_MAX_DEVICES 64

/*
 * Results of a handshake beside 0 and -1. CLOSED: the other end has closed the connection, with a message in error_p;
 * another broker may serve. MOVED: the token's broker does not hold the vGPU; error_p has the address of the broker that
 * does, as it came: 1 to HWS_MAX_ADDRESS_BYTES bytes, unchecked.
 */
#define HWS_HANDSHAKE_CLOSED 1
#define HWS_HANDSHAKE_MOVED 2

/*
 * Runs the handshake on a fresh carrier. The broker has config->connect_timeout_ms for each of its records. The worker
 * has six times as long, because the broker may have to start one. Returns 0; -1 with a message in error_p;
 * HWS_HANDSHAKE_CLOSED or HWS_HANDSHAKE_MOVED. error_p has more than HWS_MAX_ADDRESS_BYTES.
 */
int hws_handshake(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                  hws_welcome_t *welcome_p, char *error_p, size_t error_capacity);

/* The worker's answer to an offer. */
typedef struct hws_rdma_answer {
    bool accepted;                   /* the session's records travel over RDMA from now on */
    uint8_t end[HWS_RDMA_END_BYTES]; /* the worker's end */
    char reason[256];                /* why not, for people */
} hws_rdma_answer_t;

/*
 * Runs the handshake as hws_handshake() does, and offers the guest's end of a connection over RDMA: the
 * HWS_RDMA_END_BYTES of hws_rdma_prepare(). Returns as hws_handshake() does.
 */
int hws_handshake_with_offer(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                             const uint8_t *offer, hws_welcome_t *welcome_p, hws_rdma_answer_t *answer_p, char *error_p,
                             size_t error_capacity);

/*
 * Requests the status of the token's vGPU on a fresh carrier, which cannot be used afterwards. text_p receives at most
 * capacity - 1 bytes and a NUL. Returns as hws_handshake() does.
 */
int hws_handshake_ask_status(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                             char *text_p, size_t capacity, char *error_p, size_t error_capacity);

/*
 * Joins a fresh carrier to the session of `session` as a stripe (wire.md, "Stripes"). The limits of time are those of
 * hws_handshake(). Returns 0 and the number of the stripe's first chunk, or -1 with a message in error_p: stripes join
 * where the session is, so this guest follows no MOVED here.
 */
int hws_handshake_join(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                       const hws_welcome_t *session, uint32_t *first_chunk_p, char *error_p, size_t error_capacity);

/*
 * Parks a fresh carrier at the broker that `session` may move to (wire.md, "Several brokers"): the broker keeps the
 * connection until the session has come, or has stayed where it is. The limits of time are those of hws_handshake().
 * Returns 0, or -1 with a message in error_p: this guest follows no MOVED here either. A broker that has not proved
 * itself does not learn which session it is.
 */
int hws_handshake_resume(hws_carrier_t *carrier, const hws_config_t *config, uint64_t description_hash,
                         const hws_welcome_t *session, char *error_p, size_t error_capacity);

/*
 * Only the last part, for a carrier that has admitted the guest in another way: waits timeout_ms for the worker's
 * WELCOME. Returns as hws_handshake() does.
 */
int hws_handshake_await_welcome(hws_carrier_t *carrier, uint32_t timeout_ms, hws_welcome_t *welcome_p, char *error_p,
                                size_t error_capacity);

/*
 * Makes one call on the carrier of a session that has just begun, before any channel: sends a record and takes its
 * reply, of at most 4 KiB, whose status must be 0. `payload` has `bytes`, a multiple of 8. Returns 0, or -1 with a
 * message in error_p.
 */
int hws_handshake_call(hws_carrier_t *carrier, uint32_t opcode, uint64_t sequence, const void *payload, size_t bytes,
                       uint32_t timeout_ms, char *error_p, size_t error_capacity);

#endif
