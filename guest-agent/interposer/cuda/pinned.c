/* The process's view of the heap, and its mappings at the worker. */
#include "pinned.h"

#include "hws_cuda_calls.h"
#include "shm/hws_shm.h"

#include <stdlib.h>
#include <string.h>

static hws_heap_t heap;
static bool heap_open;
static const hws_shm_view_t *view;
static pthread_once_t heap_once = PTHREAD_ONCE_INIT;

typedef struct hws_context_list {
    uint64_t *handles;
    size_t count, capacity;
    bool complete;
} hws_context_list_t;

static void add_context(uint64_t handle, void *data, void *argument) {
    (void) data;
    hws_context_list_t *list = argument;
    if (list->count == list->capacity) {
        size_t wanted = list->capacity == 0 ? 16 : 2 * list->capacity;
        uint64_t *larger = realloc(list->handles, wanted * sizeof *larger);
        if (larger == NULL) {
            list->complete = false;
            return;
        }
        list->handles = larger;
        list->capacity = wanted;
    }
    list->handles[list->count++] = handle;
}

/* Waits for the work of all contexts, because any of them may use host memory. */
static int settle(void) {
    hws_context_list_t list = {.complete = true};
    hws_handle_each(HWS_KIND_CONTEXT, add_context, &list);
    int status = list.complete ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    uint32_t current = hws_tls.context;
    for (size_t i = 0; i < list.count && status == CUDA_SUCCESS; i++) {
        hws_tls.context = (uint32_t) list.handles[i];
        status = hws_call_cuCtxSynchronize();
        if (status != CUDA_SUCCESS && !hws_handle_valid(HWS_KIND_CONTEXT, list.handles[i])) {
            status = CUDA_SUCCESS; /* another thread has ended the context, and its work with it */
        }
    }
    hws_tls.context = current;
    free(list.handles);
    return status;
}

CUresult hws_pinned_settle(void) {
    return (CUresult) settle();
}

static int map(uint64_t offset, uint64_t bytes, uint64_t *address_p) {
    CUdeviceptr address; /* 0 where the device cannot map host memory; copies work nevertheless */
    HWS_TRY(hws_call_hwsHostMap(view->header->heap_offset + offset, bytes, &address));
    *address_p = address;
    return CUDA_SUCCESS;
}

static int unmap(uint64_t offset) {
    return hws_call_hwsHostUnmap(view->header->heap_offset + offset);
}

static const hws_heap_hooks_t hooks = {map, unmap, settle, hws_shm_reclaim};

static void open_heap(void) {
    view = hws_shm_current();
    heap_open = view != NULL
        && hws_heap_open(&heap, view->heap_table, view->header->heap_bytes / HWS_GRANULE_BYTES, view->slot, &hooks);
}

int hws_pinned_allocate(uint64_t bytes, hws_heap_block_t *block_p, void **memory_p) {
    pthread_once(&heap_once, open_heap);
    if (!heap_open) {
        return HWS_HEAP_FULL;
    }
    int status = hws_heap_allocate(&heap, bytes, block_p);
    if (status == 0) {
        /* Its last owner may have been another process; and CUDA's memory is zeroed. */
        *memory_p = memset(view->heap + block_p->offset, 0, bytes);
    }
    return status;
}

CUresult hws_pinned_free(void *memory, uint64_t bytes) {
    const hws_heap_block_t block = {.offset = (uint64_t) ((uint8_t *) memory - view->heap), .bytes = bytes};
    return (CUresult) hws_heap_free(&heap, &block);
}

void hws_pinned_usage(uint64_t *available_p, uint64_t *total_p) {
    *available_p = heap_open ? hws_heap_available(&heap) * HWS_GRANULE_BYTES : 0;
    *total_p = heap_open ? heap.granules * HWS_GRANULE_BYTES : 0;
}

bool hws_pinned_log_full(void) {
    static _Atomic bool logged;
    uint64_t available, total;
    hws_pinned_usage(&available, &total);
    if (total != 0 && !atomic_exchange(&logged, true)) {
        hws_log(HWS_WARN,
                "the region has no room for more pinned memory: further pinned memory lies outside it, where "
                "copies and kernels' uses are slower: availableBytes=%llu heapBytes=%llu",
                (unsigned long long) available, (unsigned long long) total);
    }
    return total != 0;
}
