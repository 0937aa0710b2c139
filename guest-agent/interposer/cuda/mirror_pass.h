/*
 * Passes of the program through a range of pages: which pages it will need next. Each function is called with the lock
 * of the range.
 *
 * A pass begins with a few pages, and each further fault of it doubles them. From a size on, a page in the middle stays
 * away. Its fault tells that the program goes on, while it still has pages in front of it. This page also shows whether
 * the program still writes: pages in front may then be written as soon as they come, and need no fault.
 */
#ifndef HWS_MIRROR_PASS_H
#define HWS_MIRROR_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HWS_PASSES 4u            /* of one range at a time */
#define HWS_PASS_FIRST_PAGES 4u  /* of a pass */
#define HWS_PASS_PAGES 4096u     /* at most: 16 MiB */
#define HWS_PASS_WIRE_PAGES 256u /* from this size on a pass has a tripwire */
#define HWS_PASS_NO_PAGE SIZE_MAX

/* All zeros: unused. */
typedef struct hws_pass {
    struct hws_pass *following; /* in the queue of mirror_ahead.h */
    void *range;                /* the owner's */
    bool is_queued;
    uint64_t used;      /* number of its last fault among all */
    size_t pages;       /* that the last fault asked for; 0: the pass is unused */
    size_t next;        /* the first page that has not been asked for */
    size_t until;       /* pages before this one are brought ahead */
    size_t tripwire;    /* not brought; HWS_PASS_NO_PAGE: there is none */
    size_t probe;       /* of the last fault, while the program has not written it; else HWS_PASS_NO_PAGE */
    size_t write_until; /* pages before this one are brought for writing */
} hws_pass_t;

/* The pass that a fault at this page continues, else one to begin, of HWS_PASSES. */
hws_pass_t *hws_pass_find(hws_pass_t *passes, size_t page);

/* Notes a fault at this page. The pass begins again if the page does not continue it. Returns whether it does. */
bool hws_pass_step(hws_pass_t *pass, size_t page);

/* Notes that this fault got so many pages. The others of the pass are to be brought; `end` is that of the range. */
void hws_pass_advance(hws_pass_t *pass, size_t page, size_t pages, size_t end);

/*
 * Notes that the program writes in [first, end), to pages that a fault has brought. Returns whether a lone read was
 * among them, which no other fault has followed.
 */
bool hws_pass_note_write(hws_pass_t *passes, size_t first, size_t end);

/* Whether a program mostly writes to a page that it has read alone, such as a counter. All zeros: it does not. */
typedef struct hws_habit {
    uint8_t writes; /* rises and falls with what was seen */
    uint8_t reads;  /* lone reads, modulo HWS_HABIT_TURN */
} hws_habit_t;

#define HWS_HABIT_TURN 8u /* one of so many reads is not treated as a write, to see what follows it */

/* Notes that a write has followed a lone read. */
void hws_habit_note_write(hws_habit_t *habit);

/*
 * At a lone read: whether to treat it as a write. `forgotten` is the pass that hws_pass_find() has given for it, before
 * hws_pass_step().
 */
bool hws_habit_expects_write(hws_habit_t *habit, const hws_pass_t *forgotten);

/* Gets pages that are to be brought, at most `limit`. Returns 0 when there are none; the pass is then complete. */
size_t hws_pass_ahead(hws_pass_t *pass, size_t limit, bool *is_write_p);

#endif
