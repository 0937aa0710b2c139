/*
 * What the guest knows of a context that has no work left, so that a synchronise right behind a copy that has waited
 * costs no second round trip.
 *
 * All records of a process are one ordered stream. When a context has been waited for and a thread then copies, waits
 * for that copy's stream, and nobody has sent anything in between, there is no work in the context again; the next
 * cuCtxSynchronize has nothing to wait for. That holds once for each copy: a program that asks again asks the worker,
 * so it learns of a lost session as it would without this.
 */
#ifndef HWS_QUIET_H
#define HWS_QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* What a copy has found when it began. */
typedef struct hws_quiet {
    bool was_quiet;
    uint32_t sent;
    uint64_t sequence;
} hws_quiet_t;

/* The worker has said that the current context of this thread has no work up to this thread's last record. */
void hws_quiet_note(void);

/* Before the first record of a copy. Any thread. */
hws_quiet_t hws_quiet_begin(void);

/* The copy that began so is over, and its stream has been waited for with success. */
void hws_quiet_end(const hws_quiet_t *began);

/* Whether the current context is known to have no work, by a copy of which this has not been asked before. */
bool hws_quiet_take(void);

#endif
