/*
 * Brings the pages that the host and the device use in turn (mirror_turns.h) with the program's waits.
 *
 * The copies travel before the wait where all unfinished work is in one stream: they follow it there, and the wait
 * covers them. Elsewhere they are fetched after the wait, with one round trip. A page is given to the host only while no
 * work can run. Since its copy no work may have begun, and the library may have sent no bytes to devices. The host may
 * write the page. Before work, the bytes that differ from its twin return.
 */
#ifndef HWS_MIRROR_SHUTTLE_H
#define HWS_MIRROR_SHUTTLE_H

#include "mirror_state.h"

/* Notes a wait for work that no other wait has covered. Without the lock. */
void hws_shuttle_note_wait(void);

/* Whether there are pages to bring. Without the lock. */
bool hws_shuttle_has_pages(void);

/* Notes a fault while no work runs. Returns how many pages it may bring, at most `limit`. */
size_t hws_shuttle_note_fault(const hws_mirror_t *mirror, size_t page, size_t limit, bool is_lone);

/*
 * Before a wait that covers the stream, in the current context, when no other stream has unfinished work up to the
 * mark. Issues the copies. Returns whether hws_shuttle_arrive() must follow, or, after a wait that failed,
 * hws_shuttle_fail().
 */
bool hws_shuttle_depart(CUstream stream, uint64_t mark, bool covers_context);

/*
 * After a wait that covered these copies. / After one that failed. / After another wait. The first and the last give
 * the pages to the host, if no work can run.
 */
void hws_shuttle_arrive(void);
void hws_shuttle_fail(void);
void hws_shuttle_fetch(void);

/* Before the lock is taken for hws_shuttle_arrive(): waits until the bytes are in this process. Without the lock. */
void hws_shuttle_await_bytes(void);

/* Allocates what is needed, once. Returns false when memory is short. Without the lock. */
bool hws_shuttle_allocate(void);

/* Sends what the host has changed. A mirror for which that fails is lost. / Takes the pages from the host. */
void hws_shuttle_send(void);
void hws_shuttle_drop(void);

/* Forgets the pages of a mirror. / Waits for copies that read its memory. */
void hws_shuttle_forget(const hws_mirror_t *mirror);
void hws_shuttle_await(const hws_mirror_t *mirror);

#endif
