#include "mirror.h"

#include "context.h"
#include "copy.h"
#include "mirror_faults.h"
#include "mirror_lanes.h"
#include "mirror_pages.h"
#include "mirror_shuttle.h"
#include "mirror_state.h"
#include "mirror_windows.h"
#include "mirror_work.h"
#include "pinned.h"

#include "hws_addresses.h"
#include "hws_cuda_calls.h"

#include "shm/hws_shm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

hws_mirrors_t hws_mirrors = {.lock = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

size_t hws_mirror_above(uint64_t address) {
    size_t low = 0, high = hws_mirrors.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (hws_mirrors.items[middle]->base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

hws_mirror_t *hws_mirror_find(uint64_t address) {
    size_t next = hws_mirror_above(address);
    hws_mirror_t *mirror = next == 0 ? NULL : hws_mirrors.items[next - 1];
    return mirror != NULL && address - mirror->base < mirror->pages * HWS_PAGE ? mirror : NULL;
}

uint32_t hws_mirror_enter(void) {
    pthread_mutex_lock(&hws_mirrors.lock);
    hws_tls.moves_pages = true;
    return hws_tls.context;
}

void hws_mirror_leave(uint32_t context) {
    hws_tls.context = context;
    hws_tls.moves_pages = false;
    pthread_mutex_unlock(&hws_mirrors.lock);
}

void *hws_mirror_allocate_pages(size_t pages) {
    void *memory = mmap(NULL, pages * HWS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Lets devices write the memory, if it fits the region. */
bool hws_mirror_allocate_staging(size_t pages, hws_staging_t *staging_p) {
    hws_heap_block_t block;
    const hws_shm_view_t *view = hws_shm_current();
    *staging_p = (hws_staging_t) {0};
    if (view != NULL && hws_pinned_allocate(pages * HWS_PAGE, &block, &staging_p->bytes) == CUDA_SUCCESS) {
        staging_p->region_offset = hws_shm_offset(view, staging_p->bytes);
    } else {
        staging_p->bytes = hws_mirror_allocate_pages(pages);
    }
    return staging_p->bytes != NULL;
}

/* Lock held, and the host has no pages. */
static CUresult copy_at_device(const hws_mirror_t *mirror, uint8_t *buffer, uint64_t address, uint64_t bytes,
                               bool to_memory) {
    hws_span_t part;
    for (size_t at = 0; hws_lanes_next_span(mirror, &at, address, bytes, &part);) {
        hws_page_lane_t *lane;
        uint8_t *place = buffer + (part.address - address);
        HWS_TRY(hws_lane_of(part.context, &lane));
        if (!to_memory) {
            HWS_TRY(hws_copy_fetch(place, part.address, part.bytes, hws_lane_stream(lane)));
        } else {
            hws_mirrors.changes++;
            HWS_TRY(hws_copy_send(part.address, place, part.bytes, hws_lane_stream(lane)));
            HWS_TRY(hws_call_cuStreamSynchronize(hws_lane_stream(lane)));
        }
    }
    return CUDA_SUCCESS;
}

CUresult hws_mirror_copy(void *buffer, uint64_t address, uint64_t bytes, bool to_memory) {
    void *memory = (void *) (uintptr_t) address;
    uint32_t context = hws_mirror_enter();
    hws_mirror_t *mirror = hws_mirror_find(address);
    CUresult result = CUDA_SUCCESS;
    if (mirror != NULL && !mirror->is_free && !mirror->is_lost) {
        hws_pages_give_back(NULL);
        mirror = hws_mirror_find(address); /* another thread may have removed it meanwhile */
    }
    if (mirror != NULL && !mirror->is_free && !mirror->is_lost) {
        result = copy_at_device(mirror, buffer, address, bytes, to_memory);
    } else {
        memcpy(to_memory ? memory : buffer, to_memory ? buffer : memory, bytes);
    }
    hws_mirror_leave(context);
    return result;
}

static void open_once(void) {
    hws_mirrors.trap = hws_trap_userfault.open() ? &hws_trap_userfault
        : hws_trap_signal.open()                 ? &hws_trap_signal
                                                 : NULL;
    if (hws_mirrors.trap != NULL && (!hws_windows_allocate() || !hws_shuttle_allocate() || !hws_faults_start())) {
        hws_mirrors.trap = NULL;
    }
}

bool hws_mirror_open(void) {
    pthread_once(&once, open_once);
    return hws_mirrors.trap != NULL;
}

static bool make_room(void) {
    if (hws_mirrors.count < hws_mirrors.capacity) {
        return true;
    }
    size_t wanted = hws_mirrors.capacity == 0 ? 64 : 2 * hws_mirrors.capacity;
    hws_mirror_t **larger = realloc(hws_mirrors.items, wanted * sizeof *larger);
    if (larger == NULL) {
        return false;
    }
    hws_mirrors.items = larger;
    hws_mirrors.capacity = wanted;
    return true;
}

CUresult hws_mirror_insert(hws_mirror_t *mirror, bool (*add)(uint64_t, uint64_t)) {
    if (!make_room() || !add(mirror->base, mirror->pages * HWS_PAGE)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t at = hws_mirror_above(mirror->base);
    memmove(hws_mirrors.items + at + 1, hws_mirrors.items + at, (hws_mirrors.count - at) * sizeof *hws_mirrors.items);
    hws_mirrors.items[at] = mirror;
    hws_mirrors.count++;
    atomic_store(&hws_mirrors.present, true);
    return CUDA_SUCCESS;
}

hws_mirror_t *hws_mirror_new(uint64_t base, size_t pages) {
    hws_mirror_t *mirror = calloc(1, sizeof *mirror + pages);
    if (mirror != NULL) {
        mirror->base = base;
        mirror->pages = pages;
        mirror->context = (uint32_t) (uintptr_t) hws_context_owner();
        mirror->is_free = true;
    }
    return mirror;
}

/* The device's bytes become zeros in the lane, before any page of the host arrives there. */
static CUresult clear(const hws_mirror_t *mirror) {
    hws_page_lane_t *lane;
    HWS_TRY(hws_lane_of(mirror->context, &lane));
    HWS_TRY(hws_call_cuMemsetD8Async(mirror->base, 0, mirror->pages * HWS_PAGE, hws_lane_stream(lane)));
    hws_lane_note_sent(lane);
    return CUDA_SUCCESS;
}

static CUresult begin_mirror(CUdeviceptr address, uint64_t bytes, bool (*add)(uint64_t, uint64_t)) {
    hws_mirror_t *mirror = hws_mirror_new(address, bytes / HWS_PAGE);
    if (mirror == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint32_t context = hws_mirror_enter();
    hws_work_watch();
    CUresult result = clear(mirror);
    result = result != CUDA_SUCCESS ? result : hws_mirror_insert(mirror, add);
    hws_mirror_leave(context);
    if (result != CUDA_SUCCESS) {
        free(mirror);
    }
    return result;
}

CUresult hws_mirror_add(CUdeviceptr address, uint64_t bytes) {
    return begin_mirror(address, bytes, hws_mirrors.trap->add);
}

CUresult hws_mirror_adopt(CUdeviceptr address, uint64_t bytes) {
    return begin_mirror(address, bytes, hws_mirrors.trap->adopt);
}

/* Takes the memory away from the host. Only the reservation of its addresses stays. */
static void take_away(const hws_mirror_t *mirror) {
    hws_addresses_empty(mirror->base, mirror->pages * HWS_PAGE, "managed or mapped memory");
    hws_mirrors.trap->remove(mirror->base, mirror->pages * HWS_PAGE);
}

void hws_mirror_end(hws_mirror_t *mirror) {
    if (atomic_load(&hws_work.unsettled) != 0) {
        hws_lanes_wait();
    }
    hws_shuttle_await(mirror);
    hws_pages_forget(mirror);
    size_t at = hws_mirror_above(mirror->base) - 1;
    hws_mirrors.count--;
    memmove(hws_mirrors.items + at, hws_mirrors.items + at + 1, (hws_mirrors.count - at) * sizeof *hws_mirrors.items);
    take_away(mirror);
    hws_spans_free(&mirror->spans);
    free(mirror);
}

void hws_mirror_remove(CUdeviceptr address) {
    uint32_t context = hws_mirror_enter();
    hws_mirror_t *mirror = hws_mirror_find(address);
    while (mirror != NULL && mirror->base == address && mirror->pieces != 0) {
        hws_ahead_stop(mirror);
        pthread_cond_wait(&hws_mirrors.arrived, &hws_mirrors.lock);
        mirror = hws_mirror_find(address);
    }
    if (mirror != NULL && mirror->base == address) {
        hws_mirror_end(mirror);
    }
    hws_mirror_leave(context);
}
