/*
 * Pinned memory that the network adapter reads and writes by itself: copies over RDMA, without a copy by the processor.
 *
 * A block is registered with the adapter at its first long copy, because registering costs more than a short copy
 * does. It stays registered until the program gives it up, or a device takes its bytes over (shadow.h). Memory that
 * the adapter refuses, for example for the limit of locked memory, is copied by the processor.
 */
#ifndef HWS_DIRECT_H
#define HWS_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

struct hws_direct_block;

/* Registered memory that a copy uses. */
typedef struct hws_direct {
    struct hws_direct_block *block;
    void *registered; /* for hws_bulk_copy_t and hws_rdma_write() */
    uint32_t key;     /* by which the worker writes and reads it */
    bool stays;       /* no device can take its bytes over (shadow.h) */
} hws_direct_t;

/*
 * Begins a copy of pinned memory, at least 1 byte. `writes`: the copy writes the memory. Any thread, like all functions
 * here. Returns false, with nothing begun, if the adapter cannot carry the bytes: over another carrier, and for memory
 * that is not pinned or that the adapter refuses. A short copy registers no block, so it gets false before a long one.
 */
bool hws_direct_begin(hws_direct_t *direct_p, const void *host, uint64_t bytes, bool writes);

/* Ends the copy's use of the registration: its requests have been posted, and its record has been sent. */
void hws_direct_end(const hws_direct_t *direct);

/*
 * Ends the registration of a block that starts here, if it has one, when the adapter has read what was posted. The caller
 * has waited for all copies to it.
 */
void hws_direct_forget(const void *base);

/*
 * Where the worker's copy area lies, and its key, for hws_rdma_write(). Returns false when the worker gives none; its
 * bytes then travel in records.
 */
bool hws_direct_area(uint64_t *address_p, uint32_t *key_p);

#endif
