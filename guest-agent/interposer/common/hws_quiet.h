/*
 * Tracks contexts without outstanding work. A synchronise directly after a copy that has waited then needs no second
 * round trip.
 *
 * All records of a process are one ordered stream. Suppose that a thread waits for a context, copies, and waits for the
 * copy's stream, and that no other thread sends a record meanwhile. The context then has no work again, and the next
 * cuCtxSynchronize has nothing to wait for. This holds once for each copy. A second cuCtxSynchronize goes to the
 * worker, so the program detects a lost session as it would without this.
 */
#ifndef HWS_QUIET_H
#define HWS_QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* The state at the beginning of a copy. */
typedef struct hws_quiet {
    bool was_quiet;
    uint32_t sent;
    uint64_t sequence;
} hws_quiet_t;

/* Notes that the current context of this thread has no work up to this thread's last record. */
void hws_quiet_note(void);

/* Called before the first record of a copy, or of calls that issue no work. Any thread. */
hws_quiet_t hws_quiet_begin(void);

/* Ends that copy. The wait for its stream has succeeded. */
void hws_quiet_end(const hws_quiet_t *began);

/* Ends calls that issue no work and have succeeded: a context without work still has none. */
void hws_quiet_keep(const hws_quiet_t *began);

/* Whether the current context of this thread has no work. */
bool hws_quiet_is(void);

/* Whether the current context has no work because of a copy that was not reported here before. */
bool hws_quiet_take(void);

#endif
