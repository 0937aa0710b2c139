/*
 * The channel: the process's one ordered stream of records to its worker, and what comes back.
 *
 * Senders serialise on one lock. Over a direct carrier it is held for a copy into the ring. Over any other it is held
 * for a copy into the send buffer; a sender thread drains that, so that a burst of asynchronous calls makes no system
 * call in the caller. A synchronous caller sends for itself. Of the
 * threads that wait, one reads for all; a background reader takes that role only when nobody waits and a host
 * function or an asynchronous copy to pinned memory is outstanding.
 *
 * All functions may be called from any thread once hws_channel_open() has returned. Results are CUresult values: 0,
 * or CUDA's error. Once the channel has failed, every waiting and every later call gets the same error at once.
 */
#ifndef HWS_CHANNEL_H
#define HWS_CHANNEL_H

#include "hws_carrier.h"
#include "hws_handshake.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The error of a lost session. CUDA documents CUDA_ERROR_DEVICE_UNAVAILABLE (46) as "the requested CUDA device is
 * unavailable at the current time", which is what happened; 999 would hide the cause, and 700..719 would accuse the
 * program's kernel.
 */
#define HWS_LOST_STATUS 46
#define HWS_STATUS_INVALID_VALUE 1
#define HWS_STATUS_NOT_INITIALIZED 3
#define HWS_STATUS_DEINITIALIZED 4
#define HWS_STATUS_NOT_PERMITTED 800 /* CUDA_ERROR_NOT_PERMITTED: a CUDA call inside a host function */

/* What a thread carries into each record. */
typedef struct hws_tls {
    uint32_t thread;  /* from 1, given at the thread's first record */
    uint32_t context; /* id of the current context, 0 for none */
    bool in_callback; /* set on the thread that runs host functions: CUDA forbids calls there */
    uint32_t sent;    /* records of this thread, modulo 2^32 */
    uint64_t sequence; /* of its last record; 0 before the first */
} hws_tls_t;

extern _Thread_local hws_tls_t hws_tls;

/* The sequence of the last record that any thread has sent; 0 before the first. Any thread. */
uint64_t hws_channel_last_sequence(void);

/* What the owner of the channel wants to know. Each may be called from any thread, with no lock of the channel held. */
typedef struct hws_channel_hooks {
    void (*run_callback)(uint64_t callback_id, int status); /* on the callback thread */
    void (*failed)(int status);                             /* once, after the line on stderr */
    void (*error)(int status);                              /* a reply that is not 0, before its caller sees it */
} hws_channel_hooks_t;

/*
 * Makes the channel over a carrier that has done its handshake. Takes the carrier. Returns 0, or -1 when memory or
 * threads are short. Not to be called while a channel is open.
 */
int hws_channel_open(hws_carrier_t *carrier, const hws_welcome_t *welcome, const hws_channel_hooks_t *hooks);

/*
 * Ends the channel without waiting for outstanding work, as a process that exits does: the carrier is shut down,
 * waiting and later calls get `status`, nothing is logged. Threads of the channel may still be on their way out, so
 * nothing is freed.
 */
void hws_channel_close(int status);

/*
 * In a forked child, where no thread of the channel exists: closes the child's copy of the descriptor, touches no
 * lock.
 */
void hws_channel_abandon_in_child(void);

/* Ends the channel by a fault and says why, once, on stderr. Returns the status that calls get from now on. */
__attribute__((format(printf, 2, 3))) int hws_channel_fail(int status, const char *format, ...);

/* 0 while the channel works, else what every call answers. */
int hws_channel_status(void);

/* What the worker promised at the handshake. Constant once open. */
const hws_welcome_t *hws_channel_welcome(void);

/*
 * Sends one asynchronous call. The record is payload then bulk; with a bulk, payload_bytes must be a multiple of 8.
 * The bulk is not copied when it is large, but has been sent when this returns: the caller may reuse it. Waits only
 * for credit (HWS_FLAG_CREDITED) or for room. Returns 0, or why it was not sent; what the worker makes of it shows at
 * a later call.
 */
int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes);

/*
 * Sends one call and waits for its reply. On 0, reply holds *reply_bytes_p bytes; on an error nothing was written. A
 * reply longer than reply_capacity is a breach of the protocol and ends the channel.
 */
int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p);

/* Where the bytes of a device-to-host copy go: `slices` times `rows` rows of width_bytes. A plain copy is one row. */
typedef struct hws_target {
    void *base;
    uint64_t width_bytes;
    uint64_t rows;
    uint64_t pitch_bytes;       /* from a row to the next, at least width_bytes */
    uint64_t slices;
    uint64_t slice_pitch_bytes; /* from a slice to the next, at least rows * pitch_bytes */
} hws_target_t;

/*
 * Sends a call that is answered by DATA records and a reply. With `wait`, returns when all bytes are there. Without,
 * returns at once: a background reader writes the target (pinned memory, which the caller promises to leave alone),
 * always before the completion of anything later in the stream is reported; a failure shows at a later synchronising
 * call.
 */
int hws_read(uint32_t opcode, const void *payload, uint32_t payload_bytes, const hws_target_t *target, bool wait);

/* Waits until no asynchronous copy to [base, base + bytes) is outstanding: before such memory is freed. */
void hws_channel_wait_for_target(const void *base, uint64_t bytes);

/* Says that a CALLBACK will come for a call that is about to be sent; take it back when sending fails. */
int hws_channel_expect_callback(void);
void hws_channel_unexpect_callback(void);

/*
 * Puts a blob (a device code image) at the worker's: announced by its SHA-256, sent only where the worker does not
 * have it from an earlier session. Returns 0 and the id by which later calls name it.
 */
int hws_stage(const void *blob, uint64_t bytes, uint64_t *blob_id_p);

/* The error of an earlier asynchronous copy that nobody waited for, taken away by asking; 0 for none. */
int hws_channel_take_deferred(void);

/* Counters since the channel was opened. */
typedef struct hws_statistics {
    const char *carrier;
    uint64_t calls;       /* records sent for calls */
    uint64_t round_trips; /* of these, calls that waited for a reply */
    uint64_t bytes_out;
    uint64_t bytes_in;
} hws_statistics_t;

void hws_channel_statistics(hws_statistics_t *statistics_p);

/*
 * Writes the counters as one line of JSON to stderr (HAWSER_STATS=1) or appends it to a file (HAWSER_STATS=path);
 * nothing when the variable is not set.
 */
void hws_statistics_report(void);

#endif
