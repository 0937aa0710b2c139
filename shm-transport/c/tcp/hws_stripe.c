#include "hws_stripe.h"

#include "../hws_broker.h"
#include "../hws_channel.h"
#include "../hws_channel_move.h"
#include "../hws_log.h"
#include "../hws_record.h"
#include "../hws_thread.h"
#include "../shm/hws_bulk_job.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * Measured on 16 cores with an H200, 2026-11-28: 1, 2, 3, 4, 6 and 8 plain sockets on loopback move 3.6, 6.8, 9.6, 12.0,
 * 16.2 and 18.6 GB/s, with a thread at each end. 4 fill most networks, and leave processors to the program.
 */
#define USUAL_THREADS 4
/* A program opens no stripe before its long copies had so many bytes, so that programs with a few copies open none. */
#define FIRST_BYTES (16u << 20)

#define NO_CHUNK HWS_STRIPE_CHUNKS
/* Length of JOINED and FILLED, and of DONE's part with the chunk and the result. */
#define ANSWER_BYTES (HWS_HEADER_BYTES + 8)

_Static_assert(HWS_FILLED_FIXED_BYTES == 8, "as read below");
_Static_assert(HWS_DONE_FIXED_BYTES == 16, "as read below");
_Static_assert(HWS_DONE_BYTES_OFFSET == 8, "as read below");
_Static_assert(HWS_FILL_FIXED_BYTES == 8, "as sent below");

typedef enum chunk_use {
    CHUNK_FREE,
    CHUNK_FILLING, /* its bytes have been sent */
    CHUNK_COPYING, /* a call has named it */
} chunk_use_t;

typedef struct hws_stripe {
    struct hws_stripe *next; /* idle stripes; under the lock */
    hws_carrier_t *carrier;
    uint32_t first_chunk;
    chunk_use_t uses[HWS_STRIPE_CHUNKS];
    bool ours[HWS_STRIPE_CHUNKS]; /* by the copy that has the stripe, not by an earlier one */
    hws_bulk_part_t parts[HWS_STRIPE_CHUNKS];
    /* For parts with gaps, and for bytes that the program's memory cannot take. */
    uint8_t buffer[HWS_STRIPE_CHUNK_BYTES];
} hws_stripe_t;

static struct {
    pthread_mutex_t lock;
    hws_stripe_t *idle; /* the last used one first */
    unsigned open;      /* all stripes, with those that are being opened */
    unsigned chunked;   /* of these, the ones whose chunks share copies */
    _Atomic bool refused;
    _Atomic bool reads;            /* the first stripe for DATA is being opened, or was */
    _Atomic uint64_t read_bytes;   /* of long copies that no call waits for, until FIRST_BYTES */
    _Atomic uint64_t served_bytes; /* of long copies so far, until FIRST_BYTES */
    _Atomic(hws_stripe_t *) all[HWS_MAX_STRIPES];
    uint64_t moves;      /* of the session; a stripe that has been opened before the last one is of no use */
    unsigned serving;    /* threads that receive DATA */
    pthread_cond_t left; /* `serving` is less */
    hws_config_t config;
    hws_welcome_t session;
    uint64_t description_hash;
} stripes = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

static hws_bulk_way_t way;

/* Whether so many bytes, with those of earlier copies, are a reason to open stripes. */
static bool adds_up(_Atomic uint64_t *earlier, uint64_t bytes) {
    return atomic_load_explicit(earlier, memory_order_relaxed) >= FIRST_BYTES
        || atomic_fetch_add_explicit(earlier, bytes, memory_order_relaxed) + bytes >= FIRST_BYTES;
}

static bool serves(uint64_t bytes) {
    return bytes >= HWS_LONG_COPY_BYTES && !atomic_load_explicit(&stripes.refused, memory_order_relaxed)
        && adds_up(&stripes.served_bytes, bytes);
}

static hws_bulk_plan_t plan(const hws_bulk_copy_t *copy) {
    return hws_bulk_plan(copy, HWS_STRIPE_CHUNK_BYTES);
}

/* Connects to the broker and joins. Returns NULL after logging the reason. */
static hws_stripe_t *open_stripe(const hws_config_t *config) {
    char error[512] = "no memory";
    hws_stripe_t *stripe = calloc(1, sizeof *stripe);
    hws_carrier_t *carrier = stripe == NULL ? NULL : hws_broker_connect(config, error, sizeof error);
    if (carrier == NULL
        || hws_handshake_join(carrier, config, stripes.description_hash, &stripes.session, &stripe->first_chunk, error,
                              sizeof error)
            != 0) {
        hws_log(HWS_INFO, "long copies use the session's one connection: %s", error);
        if (carrier != NULL) {
            carrier->ops->destroy(carrier);
        }
        free(stripe);
        return NULL;
    }
    stripe->carrier = carrier;
    hws_channel_count_stripe();
    return stripe;
}

/*
 * Takes an idle stripe, or opens one. The caller of a copy opens none: it copies meanwhile. NULL: there is none, or no
 * more are allowed.
 */
static hws_stripe_t *take_stripe(bool caller) {
    pthread_mutex_lock(&stripes.lock);
    hws_stripe_t *stripe = stripes.idle;
    unsigned number = stripes.open;
    bool opens = stripe == NULL && !caller && stripes.chunked < way.threads && number < HWS_MAX_STRIPES
        && !atomic_load(&stripes.refused);
    if (stripe != NULL) {
        stripes.idle = stripe->next;
    } else if (opens) {
        stripes.open++;
        stripes.chunked++;
    }
    pthread_mutex_unlock(&stripes.lock);
    if (opens) {
        stripe = open_stripe(&stripes.config); /* the session does not move while this copy is under way */
        atomic_store(&stripes.all[number], stripe);
        if (stripe == NULL) {
            atomic_store(&stripes.refused, true); /* an older broker, or its limits: both will not change soon */
        }
    }
    return stripe;
}

static void give_stripe(hws_stripe_t *stripe) {
    pthread_mutex_lock(&stripes.lock);
    stripe->next = stripes.idle;
    stripes.idle = stripe;
    pthread_mutex_unlock(&stripes.lock);
}

static int lose(const char *what) {
    return hws_channel_fail(HWS_LOST_STATUS, "a connection of the session is lost: %s", what);
}

static int refuse(const char *what) {
    return hws_channel_fail(HWS_LOST_STATUS, "the worker broke the protocol, the session is over: %s", what);
}

/*
 * Receives all bytes. When the target cannot be written, *is_writable_p becomes false and the rest is dropped; NULL for
 * the library's own memory. Returns 0 or a CUresult.
 */
static int receive(hws_stripe_t *stripe, uint8_t *target, uint64_t bytes, bool *is_writable_p) {
    while (bytes > 0) {
        struct iovec piece = {target, bytes};
        errno = 0;
        ssize_t received = stripe->carrier->ops->receive(stripe->carrier, &piece, 1);
        if (received < 0 && errno == EFAULT && is_writable_p != NULL) {
            /* The stream stays in step. */
            *is_writable_p = false;
            is_writable_p = NULL;
            target = stripe->buffer;
            continue;
        }
        if (received <= 0) {
            return lose(received == 0 ? "closed by the other end" : strerror(errno));
        }
        hws_channel_count_stripe_bytes(0, (uint64_t) received);
        target += received;
        bytes -= (uint64_t) received;
    }
    return 0;
}

/* The place of a part without gaps in the program's memory; NULL for one with gaps. */
static uint8_t *place_of(const hws_bulk_copy_t *copy, const hws_bulk_part_t *part) {
    uint64_t rows = part->width == copy->pitch ? 1 : part->rows;
    return rows == 1 && part->slices == 1
        ? copy->host + part->slice * copy->slice_pitch + part->row * copy->pitch + part->x
        : NULL;
}

static uint64_t bytes_of(const hws_bulk_part_t *part) {
    return part->width * part->rows * part->slices;
}

static int send_fill(hws_stripe_t *stripe, const hws_bulk_copy_t *copy, const hws_bulk_part_t *part, uint32_t chunk) {
    uint8_t *bytes = place_of(copy, part);
    if (bytes == NULL) {
        hws_bulk_move(copy, part, stripe->buffer);
        bytes = stripe->buffer;
    }
    const uint64_t count = bytes_of(part), padded = hws_pad8(count);
    struct {
        hws_record_header_t header;
        uint32_t chunk, bytes;
    } fill = {
        .header = {.length_bytes = (int32_t) (sizeof fill + padded), .opcode = HWS_CONTROL_FILL},
        .chunk = stripe->first_chunk + chunk,
        .bytes = (uint32_t) count,
    };
    uint64_t zeros = 0;
    struct iovec pieces[3] = {{&fill, sizeof fill}, {bytes, count}, {&zeros, padded - count}};
    if (stripe->carrier->ops->send(stripe->carrier, pieces, padded == count ? 2 : 3) != 0) {
        return lose(strerror(errno));
    }
    hws_channel_count_stripe_bytes(sizeof fill + padded, 0);
    return 0;
}

/* Receives the bytes of a part whose copy to the host is done, and their padding. */
static int receive_part(hws_stripe_t *stripe, hws_job_t *job, const hws_bulk_part_t *part) {
    const uint64_t count = bytes_of(part);
    uint8_t *place = place_of(job->copy, part);
    uint64_t zeros;
    bool is_writable = true;
    int status = receive(stripe, place == NULL ? stripe->buffer : place, count, place == NULL ? NULL : &is_writable);
    if (status == 0) {
        status = receive(stripe, (uint8_t *) &zeros, hws_pad8(count) - count, NULL);
    }
    if (status == 0 && place == NULL) {
        hws_bulk_move(job->copy, part, stripe->buffer);
    }
    if (!is_writable) {
        hws_bulk_fail(job, HWS_STATUS_INVALID_VALUE);
    }
    return status;
}

/* Receives DONE's rest, and the bytes of a copy to the host. The chunk becomes free. */
static int take_done(hws_stripe_t *stripe, hws_job_t *job, uint32_t chunk, int result, uint64_t record_bytes) {
    uint32_t tail[2]; /* the number of bytes, and padding */
    int status = receive(stripe, (uint8_t *) tail, sizeof tail, NULL);
    if (status != 0) {
        return status;
    }
    const bool is_ours = stripe->ours[chunk];
    const bool brings = is_ours && !job->copy->to_device && result == 0;
    if (record_bytes != HWS_HEADER_BYTES + HWS_DONE_FIXED_BYTES + hws_pad8(tail[0])
        || tail[0] != (brings ? bytes_of(&stripe->parts[chunk]) : 0)) {
        return refuse("DONE with another number of bytes than its copy");
    }
    stripe->uses[chunk] = CHUNK_FREE;
    if (is_ours) {
        hws_bulk_fail(job, result);
    }
    return brings ? receive_part(stripe, job, &stripe->parts[chunk]) : 0;
}

/* Receives the next answer. *filled_p is the chunk of FILLED, and NO_CHUNK for another answer. Returns 0 or a CUresult. */
static int take_answer(hws_stripe_t *stripe, hws_job_t *job, uint32_t *filled_p) {
    struct {
        hws_record_header_t header;
        uint32_t chunk;
        int32_t result;
    } answer;
    _Static_assert(sizeof answer == ANSWER_BYTES, "without gaps");
    int status = receive(stripe, (uint8_t *) &answer, sizeof answer, NULL);
    if (status != 0) {
        return status;
    }
    const uint32_t chunk = answer.chunk - stripe->first_chunk;
    const uint32_t opcode = answer.header.opcode;
    *filled_p = NO_CHUNK;
    if (chunk < HWS_STRIPE_CHUNKS && opcode == HWS_CONTROL_FILLED && stripe->uses[chunk] == CHUNK_FILLING
        && answer.header.length_bytes == ANSWER_BYTES) {
        *filled_p = chunk;
        return 0;
    }
    if (chunk < HWS_STRIPE_CHUNKS && opcode == HWS_CONTROL_DONE && stripe->uses[chunk] == CHUNK_COPYING
        && answer.header.length_bytes >= ANSWER_BYTES) {
        return take_done(stripe, job, chunk, answer.result, (uint64_t) answer.header.length_bytes);
    }
    return refuse("an answer that no chunk of a stripe expects");
}

static uint32_t free_chunk(const hws_stripe_t *stripe) {
    uint32_t chunk = 0;
    while (chunk < HWS_STRIPE_CHUNKS && stripe->uses[chunk] != CHUNK_FREE) {
        chunk++;
    }
    return chunk; /* NO_CHUNK for none */
}

/* Sends the call of a part. Without it the chunk stays the guest's. */
static void send_call(hws_stripe_t *stripe, hws_job_t *job, uint32_t chunk) {
    stripe->uses[chunk] = CHUNK_COPYING;
    /* The functions count chunks from 0 and their records from 1. */
    int status = job->copy->send(job->copy, &stripe->parts[chunk], 0, stripe->first_chunk + chunk - 1);
    atomic_fetch_add(&job->sent, 1);
    if (status != 0) {
        stripe->uses[chunk] = CHUNK_FREE;
        hws_bulk_fail(job, status);
    }
}

/* Waits until the worker has the bytes of a chunk, and sends its call. */
static int send_call_when_filled(hws_stripe_t *stripe, hws_job_t *job, uint32_t chunk) {
    uint32_t filled = NO_CHUNK;
    while (filled != chunk) {
        int status = take_answer(stripe, job, &filled);
        if (status != 0) {
            return status;
        }
    }
    send_call(stripe, job, chunk);
    return 0;
}

/* Sends one part's bytes while the worker receives those of the part before. Returns 0 or a CUresult. */
static int work_to_device(hws_stripe_t *stripe, hws_job_t *job) {
    uint32_t filling = NO_CHUNK, none;
    hws_bulk_part_t part;
    int status = 0;
    while (status == 0 && hws_bulk_take_part(job, &part)) {
        uint32_t chunk;
        while ((chunk = free_chunk(stripe)) == NO_CHUNK && status == 0) {
            if (filling != NO_CHUNK) {
                status = send_call_when_filled(stripe, job, filling);
                filling = NO_CHUNK;
            } else {
                status = take_answer(stripe, job, &none);
            }
        }
        if (status == 0) {
            stripe->uses[chunk] = CHUNK_FILLING;
            stripe->ours[chunk] = true;
            stripe->parts[chunk] = part;
            status = send_fill(stripe, job->copy, &part, chunk);
        }
        if (status == 0 && filling != NO_CHUNK) {
            status = send_call_when_filled(stripe, job, filling);
        }
        filling = chunk;
    }
    return status == 0 && filling != NO_CHUNK ? send_call_when_filled(stripe, job, filling) : status;
}

static int work_to_host(hws_stripe_t *stripe, hws_job_t *job) {
    for (;;) {
        hws_bulk_part_t part;
        uint32_t chunk, none;
        while ((chunk = free_chunk(stripe)) != NO_CHUNK && hws_bulk_take_part(job, &part)) {
            stripe->ours[chunk] = true;
            stripe->parts[chunk] = part;
            send_call(stripe, job, chunk);
        }
        bool waits = false;
        for (uint32_t i = 0; i < HWS_STRIPE_CHUNKS; i++) {
            waits |= stripe->uses[i] == CHUNK_COPYING && stripe->ours[i];
        }
        /* With no chunk free, the copy before this one still has some. */
        if (!waits && chunk != NO_CHUNK) {
            return 0;
        }
        int status = take_answer(stripe, job, &none);
        if (status != 0) {
            return status;
        }
    }
}

static bool work(hws_job_t *job, bool caller) {
    hws_bulk_part_t part;
    hws_stripe_t *stripe;
    while ((stripe = take_stripe(caller)) == NULL && hws_bulk_take_part(job, &part)) {
        hws_bulk_copy_plainly(job, &part);
    }
    if (stripe != NULL) {
        memset(stripe->ours, 0, sizeof stripe->ours);
        hws_bulk_fail(job, job->copy->to_device ? work_to_device(stripe, job) : work_to_host(stripe, job));
        give_stripe(stripe);
    }
    return false;
}

static void start_reading(uintptr_t earlier);

/* Opens a stripe for DATA and serves it. The thread of the first one also starts the next thread, and so on. */
static void *read_main(void *argument) {
    const uintptr_t earlier = (uintptr_t) argument;
    pthread_mutex_lock(&stripes.lock);
    const unsigned number = stripes.open;
    const bool opens = number < HWS_MAX_STRIPES;
    stripes.open += opens ? 1 : 0;
    const hws_config_t config = stripes.config; /* it may change, as the session may move meanwhile */
    const uint64_t moves = stripes.moves;
    pthread_mutex_unlock(&stripes.lock);
    hws_stripe_t *stripe = opens ? open_stripe(&config) : NULL;
    if (stripe == NULL) {
        return NULL; /* fewer stripes, or none, carry DATA */
    }
    pthread_mutex_lock(&stripes.lock);
    const bool is_current = moves == stripes.moves;
    if (is_current) {
        stripes.serving++;
        atomic_store(&stripes.all[number], stripe);
    }
    pthread_mutex_unlock(&stripes.lock);
    if (!is_current) {
        stripe->carrier->ops->destroy(stripe->carrier);
        free(stripe);
        return NULL; /* later copies start other threads */
    }
    if (earlier + 1 < way.threads && earlier + 1 < USUAL_THREADS) {
        start_reading(earlier + 1);
    }
    hws_channel_serve_stripe(stripe->carrier, stripe->first_chunk);
    pthread_mutex_lock(&stripes.lock);
    stripes.serving--;
    pthread_cond_broadcast(&stripes.left);
    pthread_mutex_unlock(&stripes.lock);
    return NULL;
}

/* Starts a thread for a stripe after so many earlier ones. Without it, fewer stripes carry DATA. */
static void start_reading(uintptr_t earlier) {
    pthread_t thread;
    if (hws_thread_start(&thread, read_main, (void *) earlier, "hawser-data") == 0) {
        pthread_detach(thread);
    }
}

static void note_read(uint64_t bytes) {
    if (!atomic_load_explicit(&stripes.reads, memory_order_relaxed) && adds_up(&stripes.read_bytes, bytes)
        && !atomic_exchange(&stripes.reads, true)) {
        start_reading(0);
    }
}

void hws_stripe_use(const hws_config_t *config, uint64_t description_hash, const hws_welcome_t *session) {
    stripes.config = *config;
    stripes.session = *session;
    stripes.description_hash = description_hash;
    way = (hws_bulk_way_t) {.threads = hws_bulk_threads(USUAL_THREADS), .serves = serves, .plan = plan, .work = work};
    if (way.threads > 1) {
        hws_bulk_use(&way);
        hws_channel_note_reads(note_read);
    }
}

void hws_stripe_move(const hws_config_t *config) {
    pthread_mutex_lock(&stripes.lock);
    stripes.config = *config;
    stripes.moves++;
    for (unsigned i = 0; i < HWS_MAX_STRIPES; i++) {
        hws_stripe_t *stripe = atomic_load(&stripes.all[i]);
        if (stripe != NULL) {
            stripe->carrier->ops->shutdown(stripe->carrier);
        }
    }
    while (stripes.serving > 0) {
        pthread_cond_wait(&stripes.left, &stripes.lock);
    }
    const bool are_unused = hws_channel_forget_stripes();
    for (unsigned i = 0; i < HWS_MAX_STRIPES; i++) {
        hws_stripe_t *stripe = are_unused ? atomic_exchange(&stripes.all[i], NULL) : NULL;
        if (stripe != NULL) {
            stripe->carrier->ops->destroy(stripe->carrier);
            free(stripe);
        }
    }
    stripes.idle = NULL;
    stripes.open = stripes.chunked = 0;
    atomic_store(&stripes.refused, false); /* the other broker may take them */
    atomic_store(&stripes.reads, false);
    pthread_mutex_unlock(&stripes.lock);
}

void hws_stripe_abandon_in_child(void) {
    for (unsigned i = 0; i < HWS_MAX_STRIPES; i++) {
        hws_stripe_t *stripe = atomic_load(&stripes.all[i]);
        if (stripe != NULL) {
            stripe->carrier->ops->close(stripe->carrier);
        }
    }
}
