/*
 * Pinned memory outside a region, and how devices come to use it.
 *
 * A block lies at addresses of its device's window that both sides have reserved and that have no device memory. While
 * only copies use it, it is plain memory of the process: copies from and to it cost what they cost elsewhere. The first
 * use by a device exposes it: device memory appears at the same address and takes over the bytes, and the process
 * sees it by mirrored pages (mirror.h). From then on its copies are copies on the device. Such uses are the flag
 * CU_MEMHOSTALLOC_DEVICEMAP, a request for the device pointer, a call with the address as the device's, and an argument
 * of a kernel (unseen.h).
 *
 * The device memory counts against the quota, in pages of 2 MiB that several blocks can share. So kernels run at the
 * speed of the GPU's own memory, and a guest over TCP pins no memory of the worker's machine.
 *
 * Known deviation: a kernel that finds the address of a plain block only in memory, not in its arguments, ends with
 * error 700. So does a kernel of another device than the block's.
 */
#ifndef HWS_SHADOW_H
#define HWS_SHADOW_H

#include "hws_driver.h"
#include "hws_interval.h"

/*
 * Allocates a plain block of zeros for the current context's device, and enters it as HWS_MEMORY_HOST with these flags.
 * Where the process lacks such addresses, the block lies elsewhere and stays plain. Any thread, like all
 * functions here.
 */
CUresult hws_shadow_allocate(uint64_t bytes, unsigned flags, void **memory_p);

/*
 * Exposes the block that contains the address. Returns success as well when it is exposed already. Errors:
 * CUDA_ERROR_NOT_SUPPORTED for memory that cannot be exposed, CUDA_ERROR_INVALID_VALUE for memory that is no pinned
 * block, and those of cuMemAlloc.
 */
CUresult hws_shadow_expose(uint64_t address);

/* Frees a block that hws_interval_remove() has removed from the host's side, after all work of the process. */
CUresult hws_shadow_free(const hws_range_t *host);

/* Ends an exposed block whose context has ended, as the driver frees the host memory of a context. */
void hws_shadow_end(const hws_range_t *mapped);

/* A copy by the plain way, which must not meet the moment at which its memory is exposed. */
typedef struct hws_plain_copy {
    struct hws_plain_copy *next;
    uint64_t base, bytes;
} hws_plain_copy_t;

/*
 * Begins such a copy. Returns false, with nothing begun, when the memory is exposed, or is about to be: it belongs to the
 * device as soon as hws_shadow_is_exposed() returns true. A thread of the library may touch it, but the carrier may not:
 * the page could need the carrier.
 */
bool hws_shadow_begin_copy(hws_plain_copy_t *copy, const void *memory, uint64_t bytes);

/* Ends it: the bytes have been read, or the channel knows the target. */
void hws_shadow_end_copy(hws_plain_copy_t *copy);

/* Whether the address lies in an exposed block. Waits while a block is being exposed. */
bool hws_shadow_is_exposed(uint64_t address);

#endif
