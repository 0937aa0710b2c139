#include "unseen.h"

#include "shadow.h"

#include "hws_hint.h"
#include "hws_interval.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64u

typedef struct hws_span {
    _Atomic uint64_t base, end;
} hws_span_t;

/* Sorted by base. An outgrown list stays, because a launch may still read it. Doubling limits the total size. */
typedef struct hws_spans {
    size_t capacity;
    hws_span_t items[];
} hws_spans_t;

_Atomic bool hws_unseen_watched;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t version; /* odd while the list changes */
static hws_spans_t *_Atomic spans;
static _Atomic size_t span_count;
static _Atomic bool logged;

static uint64_t load(const _Atomic uint64_t *word) {
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void put(hws_span_t *span, uint64_t base, uint64_t end) {
    atomic_store_explicit(&span->base, base, memory_order_relaxed);
    atomic_store_explicit(&span->end, end, memory_order_relaxed);
}

/* Lock held. Index of the first span at or above the address. */
static size_t place_of(const hws_spans_t *list, size_t count, uint64_t base) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (load(&list->items[middle].base) < base) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void begin_change(void) {
    atomic_store_explicit(&version, load(&version) + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* pairs with the acquire fence in try_find() */
}

static void end_change(size_t count) {
    atomic_store_explicit(&span_count, count, memory_order_relaxed);
    atomic_store_explicit(&version, load(&version) + 1, memory_order_release); /* pairs with try_find()'s first load */
    atomic_store(&hws_unseen_watched, count != 0);
}

/* Makes a list with room for one more; NULL when memory is short. Lock held. */
static hws_spans_t *make_room(size_t count) {
    hws_spans_t *list = atomic_load(&spans);
    if (list != NULL && count < list->capacity) {
        return list;
    }
    size_t capacity = list == NULL ? FIRST_CAPACITY : 2 * list->capacity;
    hws_spans_t *larger = calloc(1, sizeof *larger + capacity * sizeof *larger->items);
    if (larger == NULL) {
        return NULL;
    }
    larger->capacity = capacity;
    for (size_t i = 0; i < count; i++) {
        put(&larger->items[i], load(&list->items[i].base), load(&list->items[i].end));
    }
    atomic_store_explicit(&spans, larger, memory_order_release); /* pairs with the load in try_find() */
    return larger;
}

void hws_unseen_add(uint64_t base, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    size_t count = atomic_load(&span_count);
    hws_spans_t *list = make_room(count);
    if (list != NULL) {
        size_t at = place_of(list, count, base);
        begin_change();
        for (size_t i = count; i > at; i--) {
            put(&list->items[i], load(&list->items[i - 1].base), load(&list->items[i - 1].end));
        }
        put(&list->items[at], base, base + bytes);
        end_change(count + 1);
    }
    pthread_mutex_unlock(&lock);
}

void hws_unseen_remove(uint64_t base) {
    pthread_mutex_lock(&lock);
    hws_spans_t *list = atomic_load(&spans);
    size_t count = atomic_load(&span_count), at = list == NULL ? 0 : place_of(list, count, base);
    if (at < count && load(&list->items[at].base) == base) {
        begin_change();
        for (size_t i = at; i + 1 < count; i++) {
            put(&list->items[i], load(&list->items[i + 1].base), load(&list->items[i + 1].end));
        }
        end_change(count - 1);
    }
    pthread_mutex_unlock(&lock);
}

/* Finds a span without a lock. Returns false when another thread has changed the list meanwhile. */
static bool try_find(uint64_t address, bool *found_p) {
    uint64_t before = atomic_load_explicit(&version, memory_order_acquire);
    const hws_spans_t *list = atomic_load_explicit(&spans, memory_order_acquire);
    size_t low = 0, high = atomic_load_explicit(&span_count, memory_order_relaxed);
    if (before % 2 != 0 || (list != NULL && high > list->capacity)) {
        return false;
    }
    high = list == NULL ? 0 : high;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (load(&list->items[middle].end) <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *found_p = list != NULL && low < list->capacity && load(&list->items[low].base) <= address
        && address < load(&list->items[low].end);
    atomic_thread_fence(memory_order_acquire); /* pairs with the release fence in begin_change() */
    return load(&version) == before;
}

static bool is_unseen(uint64_t address) {
    bool found = false;
    if (!try_find(address, &found)) {
        pthread_mutex_lock(&lock);
        try_find(address, &found); /* nothing changes now */
        pthread_mutex_unlock(&lock);
    }
    return found;
}

static void say(const hws_function_t *function, uint32_t offset, uint64_t address) {
    hws_range_t range;
    /* The number may also be a device's address: hws_interval.h. */
    if (hws_interval_find(HWS_SIDE_DEVICE, address, &range) || atomic_exchange(&logged, true)) {
        return;
    }
    hws_hint_set("kernel %.200s gets the address of pinned host memory that the GPU cannot see: allocate it with "
                 "cudaHostAlloc, or copy the data to device memory: argumentOffset=%u address=0x%llx",
                 function->name, offset, (unsigned long long) address);
}

CUresult hws_unseen_search(const hws_function_t *function, const uint8_t *packed) {
    for (uint32_t offset = 0; offset + sizeof(uint64_t) <= function->params_bytes; offset += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, packed + offset, sizeof word);
        if (__builtin_expect(!is_unseen(word), 1)) {
            continue;
        }
        CUresult result = hws_shadow_expose(word);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            return result;
        }
        if (result != CUDA_SUCCESS) {
            say(function, offset, word);
        }
    }
    return CUDA_SUCCESS;
}
