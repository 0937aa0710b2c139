/*
 * The mirrors of the process and the states of their pages, shared by the files of mirrored memory:
 *
 *   mirror.c            adds and removes mirrors
 *   mirror_variables.c  the same for managed variables
 *   mirror_work.c       the program's work, and waits for it
 *   mirror_pages.c      pages of the host, and their way back to the device
 *   mirror_lanes.c      transfers of bytes between both sides
 *   mirror_faults.c     accesses of the program, while no work runs
 *   mirror_windows.c    pages that the host has while work runs
 *   mirror_shuttle.c    pages that come with the program's waits
 *   mirror_pass.c, mirror_ahead.c, mirror_spans.c, mirror_turns.c
 *
 * Functions of these files that are not in mirror.h need the lock, except where this is said.
 */
#ifndef HWS_MIRROR_STATE_H
#define HWS_MIRROR_STATE_H

#include "hws_driver.h"
#include "mirror_ahead.h"
#include "mirror_spans.h"
#include "trap.h"

#include <pthread.h>
#include <stdatomic.h>

#define HWS_PAGE HWS_TRAP_PAGE_BYTES
#define HWS_SHORT_MS 1 /* for which the host keeps a page while work runs, and an answer that work runs holds */

/* HWS_PAGE_COMING: a thread brings the page ahead. Work does not begin meanwhile. HWS_PAGE_HELD: mirror_shuttle.h. */
typedef enum { HWS_PAGE_AWAY, HWS_PAGE_COMING, HWS_PAGE_CLEAN, HWS_PAGE_DIRTY, HWS_PAGE_HELD } hws_page_state_t;

typedef struct hws_mirror {
    uint64_t base;
    size_t pages;
    uint32_t context;
    bool has_variables; /* only their bytes travel, each in its own context */
    hws_spans_t spans;
    bool is_free;      /* not armed yet: the host may have written anywhere */
    bool is_lost;      /* the host's memory alone is left */
    size_t first, end; /* pages outside [first, end) are away or held */
    size_t pieces;     /* that are coming */
    hws_habit_t habit;
    hws_pass_t passes[HWS_PASSES], updates[HWS_PASSES]; /* over pages that are away, and over clean ones */
    uint8_t states[];                                   /* hws_page_state_t */
} hws_mirror_t;

typedef struct hws_mirrors {
    const hws_trap_t *trap; /* NULL: none works. Constant after hws_mirror_open() */
    pthread_mutex_t lock;   /* of everything below, except for `present` */
    hws_mirror_t **items;   /* sorted by base */
    size_t count, capacity;
    size_t pieces;          /* that are coming, of all mirrors */
    pthread_cond_t arrived; /* a piece has come */
    uint64_t changes;       /* grows with each change that the library makes on a device or to the mirrors */
    hws_staging_t staging;  /* HWS_PIECE_PAGES, of the thread that serves faults */
    _Atomic bool present;   /* the host may have pages: mirror_work.h */
} hws_mirrors_t;

extern hws_mirrors_t hws_mirrors;

/* Locks, and unlocks, for a thread that may have a current context of its own. Without the lock. */
uint32_t hws_mirror_enter(void);
void hws_mirror_leave(uint32_t context);

/* Index of the first mirror above the address. */
size_t hws_mirror_above(uint64_t address);

/* The mirror of an address; NULL when there is none. */
hws_mirror_t *hws_mirror_find(uint64_t address);

/* A mirror of the current context, which is free; NULL when memory is short. Without the lock. */
hws_mirror_t *hws_mirror_new(uint64_t base, size_t pages);

/* Lets the host use the memory of a mirror, by add() or adopt() of the trap, and enters it. */
CUresult hws_mirror_insert(hws_mirror_t *mirror, bool (*add)(uint64_t, uint64_t));

/* Ends a mirror and frees it. The reservation of its addresses stays. */
void hws_mirror_end(hws_mirror_t *mirror);

/* Memory of the library; NULL when it is short. / The same, in the region if it fits. Without the lock. */
void *hws_mirror_allocate_pages(size_t pages);
bool hws_mirror_allocate_staging(size_t pages, hws_staging_t *staging_p);

static inline uint64_t hws_mirror_address(const hws_mirror_t *mirror, size_t page) {
    return mirror->base + page * HWS_PAGE;
}

#endif
