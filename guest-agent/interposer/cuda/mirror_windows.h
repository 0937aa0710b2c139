/*
 * Pages that the host has while work runs, none for longer than HWS_SHORT_MS. The bytes that the host changes there
 * are merged with those that kernels write.
 */
#ifndef HWS_MIRROR_WINDOWS_H
#define HWS_MIRROR_WINDOWS_H

#include "mirror_state.h"

/* Allocates what windows need, once. Returns false when memory is short. Without the lock. */
bool hws_windows_allocate(void);

/* Provides a page while work runs. */
CUresult hws_windows_serve(hws_mirror_t *mirror, size_t page, bool is_write);

/* Whether the host has such pages. Without the lock: or may be getting some, which it has when the lock is free. */
bool hws_windows_exist(void);

/* Sends what the host has written and drops the pages that it got while work ran. */
void hws_windows_end(void);

/* Forgets those of a mirror. */
void hws_windows_forget(const hws_mirror_t *mirror);

#endif
