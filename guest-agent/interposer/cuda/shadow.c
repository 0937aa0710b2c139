#include "shadow.h"

#include "context.h"
#include "deferred.h"
#include "device_memory.h"
#include "direct.h"
#include "mirror.h"
#include "pinned.h"
#include "pool.h"
#include "progress.h"
#include "trap.h"
#include "unseen.h"

#include "hws_addresses.h"
#include "hws_handles.h"

#include <pthread.h>
#include <sys/mman.h>

/* Held while a block is being exposed or is taken away. Taken before the locks of the maps, mirrors and copies. */
static pthread_mutex_t expose_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t copies_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t copy_ended = PTHREAD_COND_INITIALIZER;
static hws_plain_copy_t *copies; /* under copies_lock */

static void *pointer(uint64_t address) {
    return (void *) (uintptr_t) address;
}

static uint64_t whole_pages(uint64_t bytes) {
    return (bytes + HWS_TRAP_PAGE_BYTES - 1) / HWS_TRAP_PAGE_BYTES * HWS_TRAP_PAGE_BYTES;
}

/* Plain blocks --------------------------------------------------------------------------------------------------- */

/* Replaces plain memory in the window by the reservation of its addresses, and gives those back. */
static void give_back(CUdevice device, uint64_t base, uint64_t bytes) {
    if (hws_addresses_empty(base, whole_pages(bytes), "pinned memory")) {
        hws_device_memory_unreserve(device, base, whole_pages(bytes));
    }
}

static void unmap(const hws_range_t *range) {
    if (range->arena) {
        give_back(range->device, range->base, range->bytes);
    } else {
        munmap(pointer(range->base), range->bytes);
    }
}

/* Maps zeros, in the device's window where possible. */
static CUresult map(hws_range_t *range) {
    CUdeviceptr address = 0;
    if (range->bytes > SIZE_MAX - HWS_TRAP_PAGE_BYTES) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range->arena = hws_device_memory_reserve(range->device, whole_pages(range->bytes), &address) == CUDA_SUCCESS;
    void *base = mmap(pointer(address), range->arena ? whole_pages(range->bytes) : range->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | (range->arena ? MAP_FIXED : 0), -1, 0);
    if (base == MAP_FAILED) {
        if (range->arena) {
            hws_device_memory_unreserve(range->device, address, whole_pages(range->bytes));
        }
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    /* Locks pages when they are touched, within the process's limit. Nothing here depends on it. */
    mlock2(base, range->bytes, MLOCK_ONFAULT);
    range->base = (uint64_t) (uintptr_t) base;
    return CUDA_SUCCESS;
}

CUresult hws_shadow_allocate(uint64_t bytes, unsigned flags, void **memory_p) {
    hws_range_t range = {.bytes = bytes, .memory = HWS_MEMORY_HOST, .flags = flags};
    HWS_TRY(hws_context_device(&range.device));
    range.context = (uint64_t) (uintptr_t) hws_context_owner();
    HWS_TRY(map(&range));
    if (!hws_interval_insert(&range)) {
        unmap(&range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hws_unseen_add(range.base, bytes);
    hws_progress_watch();
    *memory_p = pointer(range.base);
    return CUDA_SUCCESS;
}

/* Copies -------------------------------------------------------------------------------------------------------- */

static bool is_marked(uint64_t address) {
    hws_range_t range;
    return hws_interval_find(HWS_SIDE_HOST, address, &range) && range.mirrored;
}

bool hws_shadow_is_exposed(uint64_t address) {
    pthread_mutex_lock(&expose_lock);
    bool exposed = is_marked(address);
    pthread_mutex_unlock(&expose_lock);
    return exposed;
}

bool hws_shadow_begin_copy(hws_plain_copy_t *copy, const void *memory, uint64_t bytes) {
    *copy = (hws_plain_copy_t) {.base = (uint64_t) (uintptr_t) memory, .bytes = bytes};
    pthread_mutex_lock(&copies_lock);
    bool is_plain =
        !is_marked(copy->base); /* under the lock: take_over() marks the block before it looks at the list */
    if (is_plain) {
        copy->next = copies;
        copies = copy;
    }
    pthread_mutex_unlock(&copies_lock);
    return is_plain;
}

void hws_shadow_end_copy(hws_plain_copy_t *copy) {
    pthread_mutex_lock(&copies_lock);
    hws_plain_copy_t **link = &copies;
    while (*link != copy) {
        link = &(*link)->next;
    }
    *link = copy->next;
    pthread_cond_broadcast(&copy_ended);
    pthread_mutex_unlock(&copies_lock);
}

/* Waits for the copies that reach the block's plain bytes. Later ones see that it is exposed. */
static void wait_for_copies(uint64_t base, uint64_t bytes) {
    pthread_mutex_lock(&copies_lock);
    for (const hws_plain_copy_t *each = copies; each != NULL;) {
        if (each->base < base + bytes && base < each->base + each->bytes) {
            pthread_cond_wait(&copy_ended, &copies_lock);
            each = copies;
        } else {
            each = each->next;
        }
    }
    pthread_mutex_unlock(&copies_lock);
    hws_channel_wait_for_target(pointer(base), bytes);
}

/* Exposure ------------------------------------------------------------------------------------------------------ */

/* Marks the block as exposed on both sides of the map. */
static bool mark(const hws_range_t *host) {
    const hws_range_t mapped = {.base = host->base,
                                .bytes = host->bytes,
                                .memory = HWS_MEMORY_MAPPED,
                                .device = host->device,
                                .context = host->context,
                                .arena = true,
                                .mirrored = true,
                                .twin = host->base};
    if (!hws_interval_insert(&mapped)) {
        return false;
    }
    hws_interval_set_mirrored(host->base, true);
    return true;
}

static void unmark(uint64_t base) {
    hws_range_t mapped;
    hws_interval_set_mirrored(base, false);
    hws_interval_remove(HWS_SIDE_DEVICE, base, &mapped);
}

/* The device memory of the block takes its bytes over. In the block's context. */
static CUresult take_over(const hws_range_t *host) {
    const uint64_t bytes = whole_pages(host->bytes);
    HWS_TRY(hws_device_memory_back(host->device, host->base, bytes));
    CUresult result = mark(host) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        wait_for_copies(host->base, host->bytes);
        hws_direct_forget(pointer(host->base));
        munlock(pointer(host->base), bytes); /* locked pages cannot be dropped */
        result = hws_mirror_adopt(host->base, bytes);
        if (result != CUDA_SUCCESS) {
            unmark(host->base);
        }
    }
    if (result != CUDA_SUCCESS) {
        hws_device_memory_unback(host->device, host->base, bytes);
    }
    return result;
}

static CUresult expose(uint64_t address) {
    hws_range_t host;
    HWS_REQUIRE(hws_interval_find(HWS_SIDE_HOST, address, &host) && host.memory == HWS_MEMORY_HOST);
    if (host.mirrored) {
        return CUDA_SUCCESS;
    }
    if (!host.arena || !hws_mirror_open()) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const uint32_t current = hws_tls.context;
    if (hws_handle_valid(HWS_KIND_CONTEXT, host.context)) {
        hws_tls.context = (uint32_t) host.context;
    } else { /* its context has ended: the block belongs to the one that uses it */
        host.context = (uint64_t) (uintptr_t) hws_context_owner();
    }
    CUresult result = take_over(&host);
    hws_tls.context = current;
    if (result == CUDA_SUCCESS) {
        hws_unseen_remove(host.base);
    }
    return result;
}

CUresult hws_shadow_expose(uint64_t address) {
    pthread_mutex_lock(&expose_lock);
    CUresult result = expose(address);
    pthread_mutex_unlock(&expose_lock);
    return result;
}

static void take_away(CUdevice device, uint64_t base, uint64_t bytes) {
    hws_mirror_remove(base);
    hws_device_memory_unback(device, base, whole_pages(bytes));
    hws_device_memory_unreserve(device, base, whole_pages(bytes));
}

CUresult hws_shadow_free(const hws_range_t *host) {
    hws_range_t mapped;
    hws_unseen_remove(host->base);
    pthread_mutex_lock(&expose_lock); /* a thread that exposes the block ends before, or does not find it */
    bool is_exposed = hws_interval_remove(HWS_SIDE_DEVICE, host->base, &mapped) || host->mirrored;
    pthread_mutex_unlock(&expose_lock);
    CUresult result = hws_pinned_settle();
    /* An unfinished copy would write to memory that is no longer ours. */
    hws_channel_wait_for_target(pointer(host->base), host->bytes);
    hws_deferred_forget(pointer(host->base), host->bytes);
    hws_direct_forget(pointer(host->base));
    if (is_exposed) {
        take_away(host->device, host->base, host->bytes);
    } else {
        unmap(host);
    }
    return result;
}

void hws_shadow_end(const hws_range_t *mapped) {
    hws_range_t host;
    if (hws_interval_remove(HWS_SIDE_HOST, mapped->base, &host)) { /* else another thread frees the block */
        hws_pool_charge(host.owner, -(int64_t) host.bytes);
        take_away(mapped->device, mapped->base, mapped->bytes);
    }
}
