/* Pages of the host: their states, and their way back to the device before work begins. */
#ifndef HWS_MIRROR_PAGES_H
#define HWS_MIRROR_PAGES_H

#include "mirror_state.h"

void hws_pages_set_states(hws_mirror_t *mirror, size_t page, size_t pages, hws_page_state_t state);

/* Pages from this one on that have this state, at most `limit`. */
size_t hws_pages_run(const hws_mirror_t *mirror, size_t page, size_t limit, hws_page_state_t state);

/* Gives absent pages these bytes. / Allows writes to clean pages. */
CUresult hws_pages_provide(hws_mirror_t *mirror, size_t page, size_t pages, const void *bytes, bool is_writable);
CUresult hws_pages_allow_writes(hws_mirror_t *mirror, size_t page, size_t pages);

/* Makes pages absent. */
void hws_pages_drop(hws_mirror_t *mirror, size_t page, size_t pages);

/* Forgets all pages of a mirror. */
void hws_pages_forget(hws_mirror_t *mirror);

/*
 * Ends a mirror whose bytes on the GPU cannot be had, mostly after the error of a kernel. The host keeps what it has;
 * the rest is zeros. Natively the host could still read the memory.
 */
void hws_pages_lose(hws_mirror_t *mirror, CUresult cause);

/* Finds out which pages of free memory the host has written, and traps accesses from now on. */
CUresult hws_pages_arm(hws_mirror_t *mirror);

/*
 * Gives the device what the host has written, before work that may use it; the work of one stream, unless that is NULL.
 * The host has no pages afterwards. May unlock for a moment, and then mirrors come and go.
 */
void hws_pages_give_back(const CUstream *stream);

#endif
