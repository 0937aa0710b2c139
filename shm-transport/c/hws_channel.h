/*
 * The channel: the process's one ordered stream of records to its worker, and the records that come back.
 *
 * Senders serialise on one lock. Over a direct carrier a sender holds it for a copy into the ring. Over any other
 * carrier it holds the lock for a copy into the send buffer. A sender thread drains that buffer, so that a burst of
 * asynchronous calls makes no system call in the caller. A synchronous caller sends for itself. One of the waiting
 * threads reads for all. A background reader takes that role only when no thread waits while a host function or an
 * asynchronous copy to pinned memory is outstanding. Where the worker may send the session to another broker, it also
 * looks once a second whether something has come.
 *
 * Any thread may call these functions once hws_channel_open() has returned. Results are CUresult values: 0, or CUDA's
 * error. Once the channel has failed, every waiting and every later call gets the same error at once.
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
 * unavailable at the current time", which is the case. 999 would hide the cause, and 700..719 would blame the program's
 * kernel.
 */
#define HWS_LOST_STATUS 46
#define HWS_STATUS_INVALID_VALUE 1
#define HWS_STATUS_NOT_INITIALIZED 3
#define HWS_STATUS_DEINITIALIZED 4
#define HWS_STATUS_NOT_READY 600
#define HWS_STATUS_NOT_PERMITTED 800 /* CUDA_ERROR_NOT_PERMITTED: a CUDA call inside a host function */

/* The part of a record's header that belongs to the calling thread. */
typedef struct hws_tls {
    uint32_t thread;    /* from 1, assigned at the thread's first record */
    uint32_t context;   /* id of the current context, 0 for none */
    bool in_callback;   /* set on the thread that runs the program's host functions: CUDA forbids calls there */
    bool passing;       /* set while work is sent that changes no host memory: cuda/progress.h */
    bool is_background; /* set on a thread of the library: no thread of the program waits for its calls */
    bool moves_pages;   /* set while a thread moves pages of managed memory: that is no work of the program */
    bool in_lane;       /* set on the threads of callbacks: a move of the session waits for them */
    uint32_t sent;      /* records of this thread, modulo 2^32 */
    uint32_t announced; /* one more than `sent` when this thread last announced the answer to its next record */
    uint64_t sequence;  /* of its last record; 0 before the first */
} hws_tls_t;

extern _Thread_local hws_tls_t hws_tls;

/*
 * Watches the streams of generated calls. Called after the call's record has been sent, which hws_tls.sequence numbers,
 * and before the call returns. NULL: no watcher. Any thread.
 */
typedef void hws_stream_watcher_t(uint64_t stream);
extern hws_stream_watcher_t *_Atomic hws_stream_watcher;

/* Sequence of the last record that any thread has sent; 0 before the first. Any thread. */
uint64_t hws_channel_last_sequence(void);

/* Calls to the owner of the channel. They come from any thread, with no lock of the channel held. */
typedef struct hws_channel_hooks {
    void (*run_callback)(uint64_t callback_id, int status); /* on the thread of the callback's lane */
    void (*failed)(int status);                             /* once, after the line on stderr */
    void (*error)(int status);                              /* a reply that is not 0, before its caller sees it */
    /* The record of an event by the request `sequence` is reached. Comes before any later reply. NULL: none comes. */
    void (*event_reached)(uint64_t event_id, uint64_t sequence);
    /*
     * The worker sends the session to this broker, as it came: 1 to HWS_MAX_ADDRESS_BYTES bytes without NUL inside. On the
     * reader, which must not wait. NULL: this guest follows no vGPU, and the worker gets no FOLLOWS.
     */
    void (*leave)(const char *address);
} hws_channel_hooks_t;

/*
 * Opens the channel over a carrier that has completed its handshake, and takes the carrier. Returns 0, or -1 when
 * memory or threads are short. No channel may be open.
 */
int hws_channel_open(hws_carrier_t *carrier, const hws_welcome_t *welcome, const hws_channel_hooks_t *hooks);

/*
 * Closes the channel at the exit of the process, without waiting for outstanding work. It shuts the carrier down and
 * gives `status` to waiting and later calls. It logs nothing. It frees nothing, because threads of the channel may
 * still be running.
 */
void hws_channel_close(int status);

/*
 * In a forked child, which has no thread of the channel: closes the child's copy of the descriptor and touches no lock.
 */
void hws_channel_abandon_in_child(void);

/* Fails the channel and writes the reason to stderr, once. Returns the status that calls get from now on. */
__attribute__((format(printf, 2, 3))) int hws_channel_fail(int status, const char *format, ...);

/* 0 while the channel works, else the error that every call returns. */
int hws_channel_status(void);

/* The worker's limits from the handshake. Constant once open. */
const hws_welcome_t *hws_channel_welcome(void);

/*
 * Calls around the sending of each record whose work waits in a stream: HWS_FLAG_CREDITED, and hws_read(). They come on
 * the sending thread, with no lock of the channel held.
 */
typedef struct hws_work_hooks {
    void (*begin)(void);
    void (*end)(void); /* after the record was sent, or could not be */
} hws_work_hooks_t;

/* Watches such records from now on. The hooks must stay. An unwatched record costs one load. Any thread. */
void hws_channel_watch_work(const hws_work_hooks_t *hooks);
bool hws_channel_watches_work(void);

/*
 * Sends one asynchronous call. The record is payload then bulk; with a bulk, payload_bytes must be a multiple of 8. A
 * large bulk is not copied. It has been sent when this returns, so the caller may reuse it. Waits only for credit
 * (HWS_FLAG_CREDITED) or for room. Returns 0, or why the record was not sent; a later call reports the worker's errors.
 */
int hws_send(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes);

/*
 * Sends one call and waits for its reply. On 0, reply holds *reply_bytes_p bytes; an error writes nothing. A reply
 * longer than reply_capacity breaks the protocol and fails the channel.
 */
int hws_call(uint32_t opcode, uint32_t flags, const void *payload, uint32_t payload_bytes, const void *bulk,
             uint64_t bulk_bytes, void *reply, uint32_t reply_capacity, uint32_t *reply_bytes_p);

/*
 * The memory of a copy: `slices` times `rows` rows of width_bytes. A plain copy is one row.
 */
typedef struct hws_target {
    void *base;
    uint64_t width_bytes;
    uint64_t rows;
    uint64_t pitch_bytes; /* from a row to the next, at least width_bytes */
    uint64_t slices;
    uint64_t slice_pitch_bytes; /* from a slice to the next, at least rows * pitch_bytes */
    bool direct;                /* the worker writes or reads it by RDMA before it sends the reply; no DATA comes */
    bool optional;              /* when many copies are unfinished, there is another way than to wait */
} hws_target_t;

/*
 * Sends the call of a copy, whose answer is DATA records, unless the target is `direct`, and a reply. With `wait`, returns
 * when all bytes have travelled. Without it, returns at once, and the target is pinned memory that the caller leaves alone
 * meanwhile; a background reader writes what DATA brings. The bytes are there before the completion of anything later in
 * the stream is reported. A later synchronising call reports a failure. When many such calls are unfinished, it waits. A
 * thread that moves pages holds a lock that kernels may depend on, so it gets HWS_STATUS_NOT_READY instead, as does a
 * copy with an `optional` target.
 */
int hws_read(uint32_t opcode, const void *payload, uint32_t payload_bytes, const hws_target_t *target, bool wait);

/*
 * Calls `note` after each copy of HWS_LONG_COPY_BYTES or more by hws_read() without `wait`, on the calling thread and
 * with no lock of the channel held. The function must stay.
 */
void hws_channel_note_reads(void (*note)(uint64_t bytes));

/*
 * Lets the worker send DATA by a stripe that has joined, and receives it until the stripe or the session ends. The
 * copies are those of hws_read(), with the same checks. When the worker names a copy by AWAIT, the channel delivers no
 * later record of the session's connection before the copy's DATA. A lost stripe ends the session when such DATA is
 * missing. On a thread of the caller's own; no thread of the program may wait for it. The
 * carrier stays the caller's, who closes it after the session.
 *
 * @param first_chunk of the stripe, as JOINED says.
 */
void hws_channel_serve_stripe(hws_carrier_t *carrier, uint32_t first_chunk);

/* Waits until no asynchronous copy by hws_read() uses [base, base + bytes). Called before such memory is freed. */
void hws_channel_wait_for_target(const void *base, uint64_t bytes);

/*
 * Callbacks have two threads. A host function of the program may block, and CUDA forbids calls in it. The bytes of a
 * copy must be read nevertheless, by calls of the library.
 */
typedef enum hws_lane { HWS_LANE_PROGRAM, HWS_LANE_COPIES, HWS_LANE_COUNT } hws_lane_t;

/* Set in the id of a callback of HWS_LANE_COPIES, and only there. */
#define HWS_CALLBACK_COPY_BIT 2ull

/* Announces a CALLBACK for a call that is about to be sent. The caller withdraws it when sending fails. */
int hws_channel_expect_callback(hws_lane_t lane);
void hws_channel_unexpect_callback(hws_lane_t lane);

/*
 * Gives the worker a blob (a device code image). The blob is announced by its SHA-256 and sent only if the worker does
 * not have it from an earlier session. Returns 0 and the id by which later calls name the blob.
 */
int hws_stage(const void *blob, uint64_t bytes, uint64_t *blob_id_p);

/* Returns the error of an earlier asynchronous copy that no call waited for, and clears it; 0 for none. */
int hws_channel_take_deferred(void);

/* Counters since the channel was opened. */
typedef struct hws_statistics {
    const char *carrier;
    uint64_t calls;       /* records sent for calls */
    uint64_t round_trips; /* of these, calls whose reply the program waited for */
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint32_t stripes; /* further connections that have joined the session */
} hws_statistics_t;

void hws_channel_statistics(hws_statistics_t *statistics_p);

/* Counts a stripe that has joined, and its bytes. Any thread. */
void hws_channel_count_stripe(void);
void hws_channel_count_stripe_bytes(uint64_t bytes_out, uint64_t bytes_in);

/*
 * Writes the counters as one line of JSON to stderr (HAWSER_STATS=1) or appends it to a file (HAWSER_STATS=path). Does
 * nothing when the variable is not set.
 */
void hws_statistics_report(void);

#endif
