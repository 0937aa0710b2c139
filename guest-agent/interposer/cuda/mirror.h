/*
 * Memory that lives on a device and that the program's threads use at the same address: managed memory.
 *
 * The device's bytes are the truth while it may have work. The host has copies of pages. They come when the program
 * touches them, and a sequential pass gets more and more of them at a time. Written pages return to the device before
 * the next work, in hws_send(); then all pages are absent again. So while the host leaves the memory alone, no page
 * travels and no protection changes, and work costs one atomic addition more.
 *
 * While work runs, the host has few pages, and none for longer than a millisecond. It gets a page when two reads of it
 * are equal. It sends the bytes that have changed, and those of one page before it gets another to write. So a host
 * and a kernel that pass flags and data to each other see them in order.
 *
 * A program waits for work before it reads results. Each such wait makes stale pages absent: hws_mirror_waited().
 */
#ifndef HWS_MIRROR_H
#define HWS_MIRROR_H

#include "hws_driver.h"

/* Whether this process can trap accesses. Starts what is needed at the first call. Any thread, like all functions. */
bool hws_mirror_open(void);

/*
 * Mirrors device memory of the current context, in addresses that the process has reserved. It begins as zeros on both
 * sides. Address and length are whole pages of HWS_TRAP_PAGE_BYTES.
 */
CUresult hws_mirror_add(CUdeviceptr address, uint64_t bytes);

/* Ends that. The bytes are lost. Any access of the program then faults. No effect for another address. */
void hws_mirror_remove(CUdeviceptr address);

/* Whether any of the bytes are mirrored. */
bool hws_mirror_overlaps(const void *bytes, uint64_t length);

/* Before a wait for work. Returns what hws_mirror_waited() needs. Costs one load without mirrored memory. */
uint64_t hws_mirror_mark(void);

/* After a wait that succeeded. `for_all`: it covered all work of the process. */
void hws_mirror_waited(uint64_t mark, bool for_all);

#endif
