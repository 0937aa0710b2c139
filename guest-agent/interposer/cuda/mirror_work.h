/*
 * The program's work: records begun and records sent. They are equal while no thread is sending. `settled` is a value of
 * `issued` up to which all work has ended.
 *
 * A thread that issues work adds to `issued` and then looks at `present` of the mirrors. A thread that provides pages
 * sets `present` and then looks at `issued`. So one of them sees the other.
 *
 * Bytes that were sent may not have arrived yet, but some streams of the program wait for them: work in others must not
 * begin. `unsettled` is then `issued` before the work that was to come next, plus 1; 0: all have arrived.
 */
#ifndef HWS_MIRROR_WORK_H
#define HWS_MIRROR_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hws_work {
    _Atomic uint64_t issued, sent, settled, unsettled;
} hws_work_t;

extern hws_work_t hws_work;

/* Watches the program's work from now on. */
void hws_work_watch(void);

/* Whether no work can run. Work that begins later waits for the lock, if `present` of the mirrors is set. */
bool hws_work_is_idle(void);

/* The same, as far as it is known without a round trip. */
bool hws_work_is_known_idle(void);

/* The monotonic clock. Without the lock. */
uint64_t hws_work_now_ns(void);

#endif
