/*
 * The threads that share a long copy, for the carriers that move its parts. A carrier without chunks at both ends
 * registers its way to move them.
 */
#ifndef HWS_BULK_JOB_H
#define HWS_BULK_JOB_H

#include "hws_bulk.h"

#include "../hws_channel.h"

/* A copy in progress. */
typedef struct hws_job {
    struct hws_job *next, *previous;
    const hws_bulk_copy_t *copy;
    const struct hws_bulk_way *way;
    const hws_chunks_t *chunks; /* of the session; NULL without any */
    hws_bulk_plan_t plan;
    hws_tls_t tls;          /* the caller's: every record has its thread number and context */
    _Atomic uint64_t taken; /* parts that a thread has taken on */
    _Atomic uint64_t sent;  /* parts whose record, if it needs one, has been sent */
    _Atomic int failure;    /* of the first part that failed */
    unsigned helpers;       /* under the pool's lock */
} hws_job_t;

/* How a carrier moves the parts of copies. */
typedef struct hws_bulk_way {
    unsigned threads; /* that share a long copy, with the caller; at least 1 */

    /* Whether copies of so many bytes go this way. Any thread. */
    bool (*serves)(uint64_t bytes);

    /* Splits a copy into parts. */
    hws_bulk_plan_t (*plan)(const hws_bulk_copy_t *copy);

    /*
     * Takes parts and copies them until there are none. `caller`: on the thread of the copy's caller. Returns whether it
     * has called the copy's `synchronise`, which only the caller's thread may do.
     */
    bool (*work)(hws_job_t *job, bool caller);
} hws_bulk_way_t;

/* Registers the way of copies over a carrier without chunks at both ends. Once, before the first copy. */
void hws_bulk_use(const hws_bulk_way_t *way);

/*
 * Lets no further copy of that way begin; hws_bulk_run() waits, except on the threads of callbacks. Returns the copies
 * that still run: call it again until there are none. Any thread.
 */
unsigned hws_bulk_hold(void);

/* Ends hws_bulk_hold(). */
void hws_bulk_release(void);

/*
 * Threads that share a copy: HAWSER_COPY_THREADS, else half of the processors and at most `most`. The other half serves
 * the worker's end and the program. Returns 1..8.
 */
unsigned hws_bulk_threads(unsigned most);

/* Takes the next part, unless there is none or the copy has failed. */
bool hws_bulk_take_part(hws_job_t *job, hws_bulk_part_t *part_p);

/* Notes the CUresult of a part; only the first error counts. */
void hws_bulk_fail(hws_job_t *job, int status);

/* Copies a taken part by the copy's `copy_part`. */
void hws_bulk_copy_plainly(hws_job_t *job, const hws_bulk_part_t *part);

#endif
