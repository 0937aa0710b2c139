#include "direct.h"

#include "hws_cuda_calls.h"
#include "hws_driver.h"
#include "hws_interval.h"

#include "rdma/hws_rdma_carrier.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>

/* A record carries up to 16 KiB at the cost of a message. Registering a page costs about as much as copying it. */
#define LEAST_BYTES (16u << 10)
/* The adapter has read all before, or the connection is lost after the time that a link may be down. */
#define FORGET_MS (60u * 1000)

typedef struct hws_direct_block {
    uint64_t base, bytes;
    hws_rdma_memory_t *memory; /* NULL: the adapter refuses it */
    bool writable;
    unsigned users;
} hws_direct_block_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unused = PTHREAD_COND_INITIALIZER;
static void *blocks; /* a tree of tsearch(), by base */

static int by_base(const void *one, const void *other) {
    uint64_t first = ((const hws_direct_block_t *) one)->base, second = ((const hws_direct_block_t *) other)->base;
    return first < second ? -1 : first > second;
}

/* Lock held. */
static hws_direct_block_t *find(uint64_t base) {
    const hws_direct_block_t wanted = {.base = base};
    hws_direct_block_t *const *found = tfind(&wanted, &blocks, by_base);
    return found == NULL ? NULL : *found;
}

static void log_refusal(const char *reason) {
    static _Atomic bool logged;
    if (!atomic_exchange(&logged, true)) {
        hws_log(HWS_WARN, "the processor copies pinned memory, instead of the RDMA device: %s", reason);
    }
}

/* Registers a block. Lock held. Returns NULL when memory is short. */
static hws_direct_block_t *enter(hws_rdma_t *rdma, const hws_range_t *range) {
    hws_direct_block_t *block = calloc(1, sizeof *block);
    if (block == NULL) {
        return NULL;
    }
    char reason[256];
    void *base = (void *) (uintptr_t) range->base;
    block->base = range->base;
    block->bytes = range->bytes;
    block->memory =
        hws_rdma_register(rdma, base, range->bytes, HWS_RDMA_PEER_READS | HWS_RDMA_PEER_WRITES, reason, sizeof reason);
    block->writable = block->memory != NULL;
    if (block->memory == NULL) { /* it may be memory that the process itself cannot write */
        char ignored[256];
        block->memory = hws_rdma_register(rdma, base, range->bytes, HWS_RDMA_PEER_READS, ignored, sizeof ignored);
    }
    if (block->memory == NULL) {
        log_refusal(reason);
    }
    if (tsearch(block, &blocks, by_base) != NULL) {
        return block;
    }
    if (block->memory != NULL) {
        hws_rdma_unregister(rdma, block->memory, 0);
    }
    free(block);
    return NULL;
}

bool hws_direct_begin(hws_direct_t *direct_p, const void *host, uint64_t bytes, bool writes) {
    hws_rdma_t *rdma = hws_rdma_session();
    hws_range_t range;
    uint64_t address = (uint64_t) (uintptr_t) host;
    if (rdma == NULL || !hws_interval_find(HWS_SIDE_HOST, address, &range) || range.mirrored
        || bytes > range.bytes - (address - range.base)) {
        return false;
    }
    pthread_mutex_lock(&lock);
    hws_direct_block_t *block = find(range.base);
    if (block == NULL && bytes > LEAST_BYTES) {
        block = enter(rdma, &range);
    }
    bool usable = block != NULL && block->memory != NULL && block->bytes == range.bytes && (block->writable || !writes);
    if (usable) {
        block->users++;
        *direct_p = (hws_direct_t) {block, block->memory, hws_rdma_key(block->memory), !range.arena};
    }
    pthread_mutex_unlock(&lock);
    return usable;
}

void hws_direct_end(const hws_direct_t *direct) {
    pthread_mutex_lock(&lock);
    if (--direct->block->users == 0) {
        pthread_cond_broadcast(&unused);
    }
    pthread_mutex_unlock(&lock);
}

void hws_direct_forget(const void *base) {
    hws_rdma_t *rdma = hws_rdma_session();
    pthread_mutex_lock(&lock);
    hws_direct_block_t *block = find((uint64_t) (uintptr_t) base);
    while (block != NULL && block->users != 0) {
        pthread_cond_wait(&unused, &lock);
        block = find((uint64_t) (uintptr_t) base);
    }
    if (block != NULL) {
        tdelete(block, &blocks, by_base);
    }
    pthread_mutex_unlock(&lock);
    if (block != NULL && block->memory != NULL && rdma != NULL) { /* else the end has gone, with all registrations */
        hws_rdma_unregister(rdma, block->memory, FORGET_MS);
    }
    free(block);
}

static bool area_given;
static uint64_t area_address;
static uint32_t area_key;

static void open_area(void) {
    area_given = hws_call_hwsCopyAreaOpen(&area_address, &area_key) == CUDA_SUCCESS;
}

bool hws_direct_area(uint64_t *address_p, uint32_t *key_p) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (hws_rdma_session() == NULL) {
        return false;
    }
    pthread_once(&once, open_area);
    *address_p = area_address;
    *key_p = area_key;
    return area_given;
}
