/*
 * Shared by the files of the channel. Lock order: send_lock before receive_lock; callback_lock alone or innermost. Over
 * a direct carrier a thread holds send_lock while the ring is full, so the reader takes only receive_lock. Otherwise no
 * thread holds a lock over a system call that may block. A move takes all three locks, in this order.
 */
#ifndef HWS_CHANNEL_INTERNAL_H
#define HWS_CHANNEL_INTERNAL_H

#include "hws_channel.h"
#include "hws_record.h"
#include "shm/hws_wait.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * Size of each of the two send buffers. A burst of 2,000 launches fits; a larger buffer would only delay the first
 * byte.
 */
#define HWS_SEND_BUFFER_BYTES (256u << 10)
/* From this size on, a bulk is sent from where it lies instead of being copied first. */
#define HWS_DIRECT_BYTES (64u << 10)
/* A whole record fits behind the rest of the one before. */
#define HWS_RECEIVE_BUFFER_BYTES (HWS_MAX_RECORD_BYTES + (64u << 10))
#define HWS_RECEIVE_PIECE_BYTES (64u << 10)
/* Asynchronous copies by hws_read() at one time; a further copy waits for its end instead. */
#define HWS_MAX_DETACHED 64

/* A thread, or a detached copy, that waits for a reply or for credit. */
typedef struct hws_waiter {
    struct hws_waiter *next, *previous;
    uint64_t sequence;
    uint32_t opcode;
    bool detached; /* no thread sleeps on it: the reader finishes it */
    bool done;     /* under receive_lock; set by the reader, or without a reader by the thread that fails the channel */
    int status;
    void *reply;
    uint32_t reply_capacity;
    uint32_t reply_bytes;
    uint64_t credit_target; /* waits until the worker has released this many bytes; 0: waits for a reply */
    hws_target_t target;    /* base NULL: no DATA is expected */
    uint64_t target_bytes;
    uint64_t received_bytes; /* under receive_lock; with the records that are still being received */
    uint32_t writers;        /* threads of stripes that write to the target; under receive_lock */
    _Atomic bool faulted;    /* the target was not writable */
    _Atomic uint32_t signal; /* futex, changed under receive_lock: an hws_signal_t */
} hws_waiter_t;

typedef enum hws_signal {
    HWS_SIGNAL_NONE,
    HWS_SIGNAL_LOOK,   /* check again: done, or the reader's role is free */
    HWS_SIGNAL_ASLEEP, /* nothing yet; the waiter must be woken */
} hws_signal_t;

/* Which records a move of the session lets through (channel_move.c). */
typedef enum hws_hold {
    HWS_HOLD_NOTHING,
    HWS_HOLD_NEW, /* all but those that end something: of threads of callbacks, and announced ones */
    HWS_HOLD_ALL  /* all but LEFT */
} hws_hold_t;

typedef struct hws_outgoing {
    uint32_t opcode;
    uint32_t flags;
    const void *payload;
    uint32_t payload_bytes;
    const void *bulk;
    uint64_t bulk_bytes;
    bool through; /* no move holds it */
} hws_outgoing_t;

typedef struct hws_queued_callback {
    uint64_t id;
    int status;
} hws_queued_callback_t;

/* The callbacks of one kind, and the thread that runs them. Under callback_lock. */
typedef struct hws_callback_lane {
    pthread_cond_t wake;
    hws_queued_callback_t *queue; /* ring: room for every expected callback */
    uint32_t capacity, head, count, expected;
    bool started;
    bool runs;  /* a callback has left the queue, and the worker has not got CALLBACK_DONE */
    bool spins; /* its thread wants to be awake when a callback is expected */
    pthread_t thread;
    _Atomic uint32_t arrived; /* callbacks so far; without the lock */
    hws_spin_t spin;          /* of the thread alone */
} hws_callback_lane_t;

typedef struct hws_channel {
    _Atomic(hws_carrier_t *) carrier; /* a move replaces it, while no thread sends or receives */
    const char *carrier_name;         /* these two are the same for each carrier of the session, */
    bool direct;                      /* so that no thread has to look into one that a move frees */
    bool follows;                     /* the worker may send LEAVE. Constant once open */
    hws_welcome_t welcome;
    hws_channel_hooks_t hooks;
    _Atomic int failure; /* 0 while the channel works */

    pthread_mutex_t send_lock;
    pthread_cond_t drained; /* a drain has ended */
    pthread_cond_t sender_wake;
    uint8_t *fill;  /* where records are appended */
    uint8_t *spare; /* being sent while draining */
    size_t fill_bytes;
    bool draining;            /* one thread sends, outside the lock */
    _Atomic(hws_hold_t) hold; /* written under send_lock */
    pthread_cond_t released;  /* `hold` has ended */
    bool sender_awake;
    uint64_t left_to_sender;                /* records so far that their caller has not sent itself */
    _Atomic uint64_t next_sequence;         /* written under send_lock */
    _Atomic uint64_t credit_used_bytes;     /* written under send_lock; the reader must not wait for that lock */
    _Atomic uint64_t credit_released_bytes; /* written under receive_lock, read under send_lock: it only grows */
    bool sender_started;                    /* not over a direct carrier */
    pthread_t sender;

    pthread_mutex_t receive_lock;
    pthread_cond_t background_wake;
    pthread_cond_t detached_done;
    hws_waiter_t *first, *last; /* by sequence */
    bool leader;                /* one thread reads, outside the lock */
    uint32_t background_need;   /* detached copies and expected callbacks */
    bool background_started;
    pthread_t background;
    hws_waiter_t detached[HWS_MAX_DETACHED];
    hws_waiter_t *free_detached;
    int deferred; /* first error of a detached copy */

    /* Stripes that carry DATA (channel_stripe.c). Under receive_lock, except that any thread may shut them down. */
    _Atomic(hws_carrier_t *) stripe_carriers[HWS_MAX_STRIPES];
    uint32_t stripe_carrier_count;
    pthread_cond_t data_arrived; /* `awaited` has no writers, or a stripe is lost */
    const hws_waiter_t *awaited; /* the copy whose DATA the reader waits for */
    bool stripe_lost;
    int stripe_error; /* an errno; 0: the other end has closed it */

    uint8_t *buffer; /* the reader's: bytes [start, end) have arrived */
    size_t start, end;

    /* A move (channel_move.c). */
    _Atomic(hws_carrier_t *) next_carrier; /* parked at the other broker; any thread may shut it down */
    _Atomic bool asked;                    /* LEAVE has come, and no answer to it has gone or come */
    bool has_left, stays, has_ended;       /* the reader's: after LEFT; STAY has come; the old connection has ended */
    int end_error;                         /* of that end, an errno; 0: closed by the other end */

    pthread_mutex_t callback_lock;
    hws_callback_lane_t lanes[HWS_LANE_COUNT];

    _Atomic uint64_t next_blob;
    _Atomic uint64_t calls, round_trips, bytes_out, bytes_in;
    _Atomic uint64_t stripe_bytes_out, stripe_bytes_in;
    _Atomic uint32_t stripes;
} hws_channel_t;

extern hws_channel_t hws_channel;

/* Appends a record. With a waiter, sets its sequence and registers it. With `flush`, also starts sending the record. */
int hws_channel_submit(const hws_outgoing_t *out, hws_waiter_t *waiter, bool flush);
/* Appends a record without payload, which travels with the next one. Before the first record, not over a direct carrier. */
void hws_channel_send_with_next(uint32_t opcode);
/* Sends the contents of the send buffer, or leaves that to the thread that is sending. */
void hws_channel_flush(void);
void *hws_channel_sender_main(void *unused);

/* Adds a waiter to the list. Returns 0, or the channel's failure. */
int hws_waiter_register(hws_waiter_t *waiter);
/* Waits until the waiter is done and reads for all threads if no other thread does. Returns the waiter's status. */
int hws_waiter_wait(hws_waiter_t *waiter);
/*
 * Marks the waiter as done and removes it from the list. receive_lock held; only by the reader or when no thread reads.
 */
void hws_waiter_finish(hws_waiter_t *waiter, int status);
/*
 * Ends every waiter with the channel's failure, except those whose target a stripe still writes to: hws_copy_release()
 * ends them. receive_lock held; only by the reader or when no thread reads.
 */
void hws_waiter_fail_all(void);
/* The waiter for the reply to a request; NULL for none. receive_lock held. */
hws_waiter_t *hws_waiter_find(uint64_t sequence);
int hws_background_start(void);
/* Gives the role of the reader back, and to a thread that needs it. receive_lock held; reading releases it. */
void hws_reader_leave(void);

/* Waits while a move holds new calls. Before a thread announces an answer. */
void hws_channel_await_release(void);
/* Notes that the thread's next record ends what it has announced: no move may wait for its answer and hold it. */
static inline void hws_channel_announce(void) {
    hws_tls.announced = hws_tls.sent + 1;
}
/* Handles LEAVE, or STAY. Only the reader. Returns -1 after the channel has failed. */
int hws_leave_arrived(const uint8_t *payload, uint32_t bytes);
int hws_stay_arrived(uint32_t bytes);

/*
 * Finds the copy of a DATA record, and counts the record's bytes as received. With by_stripe the copy stays until
 * hws_copy_release(); otherwise only the reader may call this. Returns NULL after the channel has failed, because the
 * copy is not outstanding or the bytes are not all in its target. No lock held.
 */
hws_waiter_t *hws_copy_claim(uint64_t sequence, uint64_t offset, uint32_t bytes, bool by_stripe);
/* Ends the claim of a stripe's thread. receive_lock held. */
void hws_copy_release(hws_waiter_t *waiter);
/*
 * Copies bytes of the copy's contiguous form, from `offset` on, to their rows. The caller has checked that they lie
 * inside the target.
 */
void hws_target_scatter(const hws_target_t *target, uint64_t offset, const uint8_t *bytes, uint64_t count);

/*
 * Waits until so many bytes of a copy have arrived, by whatever connection. Only the reader, without a lock. Returns 0,
 * or -1 after the channel has failed, also because a stripe is lost.
 */
int hws_copy_await(uint64_t sequence, uint64_t bytes);
/* Makes the threads of stripes that carry DATA end. Any thread. */
void hws_stripes_shutdown(void);

/* Fails the channel because the worker broke a rule of the protocol; says which, and a value. Returns -1. No lock held. */
int hws_channel_refuse(const char *rule, uint64_t value);

/*
 * Receives and handles at least one piece. Only the reader. Returns 0, or -1 after the channel has failed, or after LEFT
 * the connection has ended.
 */
int hws_channel_receive(void);

/* Handles a CALLBACK that has arrived. Returns -1 when none was expected. */
int hws_callback_arrived(uint64_t id, int status);

/* Fails the channel because its carrier has failed, with the carrier's message or else errno. No lock held. */
int hws_channel_lose(void);

/*
 * Waits for the channel's threads after hws_channel_close() and frees its memory. For tests, which open another
 * channel.
 */
void hws_channel_join(void);

/* Whether CUDA forbids the program's call on this thread. The library's own calls for managed memory are none. */
static inline bool hws_is_forbidden(void) {
    return hws_tls.in_callback && !hws_tls.moves_pages;
}

static inline void hws_count(_Atomic uint64_t *counter, uint64_t amount) {
    /* Its lock or role allows one writer at a time, so no locked instruction is needed. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount, memory_order_relaxed);
}

#endif
