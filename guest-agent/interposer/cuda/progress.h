/*
 * What the guest knows about the progress of streams, without asking the worker. A copy whose bytes must be read in
 * stream order is sent at once when its stream has no work.
 *
 * Work is numbered by the sequence of its record. The watch begins with the first memory that such copies need. If there
 * was work before, all of it counts as unfinished until a wait covers it. Copies to the device (hws_tls.passing) do not
 * count as work: they end soon, and change no host memory. Nor do kernels, while they share no memory with the host.
 */
#ifndef HWS_PROGRESS_H
#define HWS_PROGRESS_H

#include "hws_cuda_types.h"

#include <stdbool.h>
#include <stdint.h>

/* Sequences: of the last work, and of the last work that is known to be done. */
typedef struct hws_progress {
    _Atomic uint64_t issued, done;
} hws_progress_t;

/* Of a context: its legacy default stream, all its other streams that wait for that one, and all its work. */
typedef struct hws_context_progress {
    hws_progress_t legacy, blocking;
    _Atomic uint64_t done;
} hws_context_progress_t;

/* A place in a stream: behind an event's record, or behind a copy. Written by one thread at a time, read by any. */
typedef struct hws_mark {
    _Atomic uint64_t sequence, stream, context; /* sequence 0: no place is known */
} hws_mark_t;

/* Begins the watch. Any thread, any number of times, like all functions here. */
void hws_progress_watch(void);

/* Whether the current context's stream has no work, and waits for none. */
bool hws_progress_is_idle(CUstream stream);

/* Sets a mark behind this thread's last record, which belongs to the stream. */
void hws_progress_mark(hws_mark_t *mark, CUstream stream);

/* What a mark says now; sequence 0: nothing. */
typedef struct hws_mark_place {
    uint64_t sequence;
    CUstream stream;
    CUcontext context;
} hws_mark_place_t;

hws_mark_place_t hws_progress_place(const hws_mark_t *mark);

/* Notes that the work up to a place is done. */
void hws_progress_note_place(const hws_mark_place_t *place);

/* Whether the work up to a mark is known to be done. */
bool hws_progress_has_reached(const hws_mark_t *mark);

/* Notes that this thread's last record was work of the stream and is done, and with it all work before. */
void hws_progress_note_work(CUstream stream);

/* Begins a wait for a stream, or a query. Returns the sequence of the stream's last work, for hws_progress_end_wait(). */
uint64_t hws_progress_begin_wait(CUstream stream);

/* Ends it. After success the stream has no work of the time before. */
void hws_progress_end_wait(CUstream stream, uint64_t began, bool success);

/* Notes that a wait for the whole current context has succeeded, which was this thread's last record. */
void hws_progress_note_context(void);

#endif
