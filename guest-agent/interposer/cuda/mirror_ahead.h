/*
 * Threads that bring the pages of passes before the program needs them. Several of them do so at the same time, because
 * the kernel takes longer to put a page into place than a device takes to send it.
 */
#ifndef HWS_MIRROR_AHEAD_H
#define HWS_MIRROR_AHEAD_H

#include "mirror_pass.h"

#include <pthread.h>

#define HWS_PIECE_PAGES 256u /* that a thread brings at once: 1 MiB */

/* Pages that a thread brings. */
typedef struct hws_piece {
    void *range; /* of the pass */
    size_t page, pages;
    bool is_write;
    uint64_t stream; /* the owner's */
    uint32_t context;
} hws_piece_t;

/* Memory of a thread for a piece. */
typedef struct hws_staging {
    void *bytes;
    uint64_t region_offset; /* where devices write it; 0: they cannot */
} hws_staging_t;

/* The owner of the pages. Its lock is held where this is said. */
typedef struct hws_ahead_owner {
    pthread_mutex_t *lock;
    /* Memory of HWS_PIECE_PAGES. Returns false when there is none. */
    bool (*allocate)(hws_staging_t *staging_p);
    /* Takes pages that a pass needs next. Returns false when it needs none any more. Lock held. */
    bool (*take)(hws_pass_t *pass, hws_piece_t *piece_p);
    /* Brings them. Returns whether it could. */
    bool (*bring)(const hws_piece_t *piece, const hws_staging_t *staging);
    /* The pages have come, or could not. Lock held. */
    void (*arrive)(const hws_piece_t *piece, bool came);
} hws_ahead_owner_t;

/* Queues a pass. The first call starts the threads; without any, no page is brought ahead. Lock held. */
void hws_ahead_queue(const hws_ahead_owner_t *owner, hws_pass_t *pass);

/* Takes the passes of a range out of the queue; NULL: of all. Pieces that were taken still arrive. Lock held. */
void hws_ahead_stop(const void *range);

#endif
