/* Advice for managed memory. It is stored, so that a program can query it. */
#include "capture.h"
#include "context.h"
#include "device.h"
#include "managed.h"
#include "trap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The advice for pages; a location of type INVALID is none. */
typedef struct hws_advice {
    bool read_mostly;
    CUmemLocation preferred, prefetched;
    bool accessed_by_host;
    uint64_t accessed_by; /* bit n: device n */
} hws_advice_t;

/* Pages from `first` up to the next part. */
typedef struct hws_part {
    size_t first;
    hws_advice_t advice;
} hws_part_t;

typedef struct hws_advised {
    struct hws_advised *next;
    uint64_t base, bytes;
    size_t count, capacity;
    hws_part_t *parts; /* sorted; the first begins at page 0 */
} hws_advised_t;

static hws_advised_t *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

_Static_assert(HWS_MAX_DEVICES <= 64, "a bit for each device");

bool hws_advice_add(uint64_t base, uint64_t bytes) {
    hws_advised_t *advised = calloc(1, sizeof *advised);
    hws_part_t *parts = calloc(1, sizeof *parts);
    if (advised == NULL || parts == NULL) {
        free(advised);
        free(parts);
        return false;
    }
    *advised = (hws_advised_t) {.base = base, .bytes = bytes, .count = 1, .capacity = 1, .parts = parts};
    pthread_mutex_lock(&lock);
    advised->next = all;
    all = advised;
    pthread_mutex_unlock(&lock);
    return true;
}

void hws_advice_remove(uint64_t base) {
    hws_advised_t *gone = NULL;
    pthread_mutex_lock(&lock);
    for (hws_advised_t **at = &all; *at != NULL && gone == NULL;) {
        if ((*at)->base == base) {
            gone = *at;
            *at = gone->next;
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&lock);
    if (gone != NULL) {
        free(gone->parts);
        free(gone);
    }
}

/* The allocation that contains the bytes, and the pages that they touch; NULL for none. Lock held. */
static hws_advised_t *find(CUdeviceptr address, size_t bytes, size_t *first_p, size_t *end_p) {
    for (hws_advised_t *at = all; at != NULL && bytes != 0; at = at->next) {
        if (address >= at->base && address - at->base < at->bytes && bytes <= at->bytes - (address - at->base)) {
            *first_p = (address - at->base) / HWS_TRAP_PAGE_BYTES;
            *end_p = (address - at->base + bytes - 1) / HWS_TRAP_PAGE_BYTES + 1;
            return at;
        }
    }
    return NULL;
}

/* Makes room for two parts more. */
static bool make_room(hws_advised_t *advised) {
    if (advised->count + 2 <= advised->capacity) {
        return true;
    }
    size_t wanted = 2 * (advised->count + 2);
    hws_part_t *larger = realloc(advised->parts, wanted * sizeof *larger);
    if (larger == NULL) {
        return false;
    }
    advised->parts = larger;
    advised->capacity = wanted;
    return true;
}

/* Makes a part begin at the page. Room for it exists. Returns its index. */
static size_t split(hws_advised_t *advised, size_t page) {
    size_t at = 0;
    while (at < advised->count && advised->parts[at].first < page) {
        at++;
    }
    if (at < advised->count && advised->parts[at].first == page) {
        return at;
    }
    memmove(advised->parts + at + 1, advised->parts + at, (advised->count - at) * sizeof *advised->parts);
    advised->parts[at] = advised->parts[at - 1];
    advised->parts[at].first = page;
    advised->count++;
    return at;
}

static bool same(CUmemLocation a, CUmemLocation b) {
    return a.type == b.type && a.id == b.id;
}

static bool is_same_advice(const hws_advice_t *a, const hws_advice_t *b) {
    return a->read_mostly == b->read_mostly && same(a->preferred, b->preferred) && same(a->prefetched, b->prefetched)
        && a->accessed_by_host == b->accessed_by_host && a->accessed_by == b->accessed_by;
}

static void merge(hws_advised_t *advised) {
    size_t kept = 1;
    for (size_t i = 1; i < advised->count; i++) {
        if (!is_same_advice(&advised->parts[kept - 1].advice, &advised->parts[i].advice)) {
            advised->parts[kept++] = advised->parts[i];
        }
    }
    advised->count = kept;
}

/* Changes the advice of a part; `kind` is a CUmem_advise. */
typedef void hws_change_t(hws_advice_t *advice, int kind, CUmemLocation location);

/* Changes the advice of pages. */
static CUresult change(CUdeviceptr address, size_t bytes, hws_change_t *apply, int kind, CUmemLocation location) {
    size_t first, end;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    hws_advised_t *advised = find(address, bytes, &first, &end);
    if (advised != NULL && !make_room(advised)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (advised != NULL) {
        size_t from = split(advised, first);
        size_t to = end * HWS_TRAP_PAGE_BYTES >= advised->bytes ? advised->count : split(advised, end);
        for (size_t i = from; i < to; i++) {
            apply(&advised->parts[i].advice, kind, location);
        }
        merge(advised);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUmemLocation plain(CUmemLocation location) {
    bool has_id = location.type == CU_MEM_LOCATION_TYPE_DEVICE || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    return (CUmemLocation) {.type = location.type, .id = has_id ? location.id : 0};
}

static void set_prefetched(hws_advice_t *advice, int unused, CUmemLocation location) {
    (void) unused;
    advice->prefetched = plain(location);
}

bool hws_advice_note_prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location) {
    return change(address, bytes, set_prefetched, 0, location) == CUDA_SUCCESS;
}

CUresult hws_advice_check_location(CUmemLocation location) {
    switch (location.type) {
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
            return CUDA_SUCCESS;
        case CU_MEM_LOCATION_TYPE_DEVICE:
            return hws_device_get(location.id) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUmemLocation hws_advice_location(CUdevice device) {
    return device == CU_DEVICE_CPU ? (CUmemLocation) {.type = CU_MEM_LOCATION_TYPE_HOST}
                                   : (CUmemLocation) {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

static void put_access(hws_advice_t *advice, CUmemLocation location, bool is_set) {
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        advice->accessed_by_host = is_set;
        return;
    }
    uint64_t bit = 1ull << location.id;
    advice->accessed_by = is_set ? advice->accessed_by | bit : advice->accessed_by & ~bit;
}

static void set_advice(hws_advice_t *advice, int kind, CUmemLocation location) {
    switch (kind) {
        case CU_MEM_ADVISE_SET_READ_MOSTLY:
        case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
            advice->read_mostly = kind == CU_MEM_ADVISE_SET_READ_MOSTLY;
            break;
        case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
            advice->preferred = plain(location);
            break;
        case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
            advice->preferred = (CUmemLocation) {.type = CU_MEM_LOCATION_TYPE_INVALID};
            break;
        default:
            put_access(advice, location, kind == CU_MEM_ADVISE_SET_ACCESSED_BY);
            break;
    }
}

HWS_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
    HWS_ENTER_CONTEXT();
    HWS_REQUIRE(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    HWS_REQUIRE(hws_interval_is_managed(devPtr, count));
    HWS_UNSAFE();
    if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY
        || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
        HWS_TRY(hws_advice_check_location(location));
    }
    return change(devPtr, count, set_advice, advice, location);
}

HWS_EXPORT CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise_v2(devPtr, count, advice, hws_advice_location(device));
}

/* The number that CUDA writes for a location; CU_DEVICE_INVALID for none, and for a NUMA node. */
static int number_of(CUmemLocation location) {
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id
        : location.type == CU_MEM_LOCATION_TYPE_HOST    ? CU_DEVICE_CPU
                                                        : CU_DEVICE_INVALID;
}

static void list_accessing(const hws_advice_t *advice, int *values, size_t count) {
    size_t used = 0;
    if (advice->accessed_by_host) {
        values[used++] = CU_DEVICE_CPU;
    }
    for (int device = 0; device < HWS_MAX_DEVICES && used < count; device++) {
        if ((advice->accessed_by >> device & 1) != 0) {
            values[used++] = device;
        }
    }
    while (used < count) {
        values[used++] = CU_DEVICE_INVALID;
    }
}

/* Writes one attribute of pages that share this advice. */
static CUresult get_attribute(void *data, size_t bytes, CUmem_range_attribute attribute, const hws_advice_t *shared) {
    HWS_REQUIRE(data != NULL && bytes != 0 && bytes % sizeof(int) == 0);
    int *values = data;
    HWS_REQUIRE(attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY || bytes == sizeof(int));
    switch (attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
            values[0] = shared->read_mostly;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
            values[0] = number_of(shared->preferred);
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
            list_accessing(shared, values, bytes / sizeof(int));
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
            values[0] = number_of(shared->prefetched);
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
            values[0] = shared->preferred.type;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
            values[0] = shared->preferred.id;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
            values[0] = shared->prefetched.type;
            return CUDA_SUCCESS;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
            values[0] = shared->prefetched.id;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The advice that all pages share; false when the bytes are not managed memory. */
static bool share(CUdeviceptr address, size_t bytes, hws_advice_t *shared_p) {
    const CUmemLocation none = {.type = CU_MEM_LOCATION_TYPE_INVALID};
    size_t first, end;
    bool begun = false;
    pthread_mutex_lock(&lock);
    const hws_advised_t *advised = find(address, bytes, &first, &end);
    for (size_t i = 0; advised != NULL && i < advised->count && advised->parts[i].first < end; i++) {
        const hws_advice_t *advice = &advised->parts[i].advice;
        if (i + 1 < advised->count && advised->parts[i + 1].first <= first) {
            continue;
        }
        if (!begun) {
            *shared_p = *advice;
            begun = true;
            continue;
        }
        shared_p->read_mostly &= advice->read_mostly;
        shared_p->preferred = same(shared_p->preferred, advice->preferred) ? advice->preferred : none;
        shared_p->prefetched = same(shared_p->prefetched, advice->prefetched) ? advice->prefetched : none;
        shared_p->accessed_by_host &= advice->accessed_by_host;
        shared_p->accessed_by &= advice->accessed_by;
    }
    pthread_mutex_unlock(&lock);
    return begun;
}

HWS_EXPORT CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                           CUdeviceptr devPtr, size_t count) {
    HWS_ENTER_CONTEXT();
    hws_advice_t shared;
    HWS_REQUIRE(share(devPtr, count, &shared));
    return get_attribute(data, dataSize, attribute, &shared);
}

HWS_EXPORT CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
                                            size_t numAttributes, CUdeviceptr devPtr, size_t count) {
    HWS_ENTER_CONTEXT();
    hws_advice_t shared;
    HWS_REQUIRE(data != NULL && dataSizes != NULL && attributes != NULL && numAttributes != 0);
    HWS_REQUIRE(share(devPtr, count, &shared));
    for (size_t i = 0; i < numAttributes; i++) {
        HWS_TRY(get_attribute(data[i], dataSizes[i], attributes[i], &shared));
    }
    return CUDA_SUCCESS;
}
