/*
 * The arenas of the devices, and their keeper: a thread that runs while an arena keeps free slabs. Free slabs count
 * against the vGPU's quota. So the keeper gives them back when the program has used none of them for a while, or when
 * the worker wants them for another session.
 */
#include "device_memory.h"

#include "trap.h"

#include "hws_addresses.h"
#include "hws_arena.h"
#include "hws_cuda_calls.h"
#include "hws_quiet.h"
#include "hws_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEPT_SHARE 16 /* of the device's memory, at most 1/16 */
#define LOOK_NS 50000000l
#define IDLE_LOOKS 20 /* one second */

typedef struct hws_device_memory {
    hws_arena_t *arena;   /* NULL: the device has none */
    int ordinal;          /* the worker's number of the device */
    bool reports;         /* the worker must know each allocation */
    bool is_reserved;     /* no other memory of this process lies at its addresses */
    _Atomic bool is_open; /* to the other devices */
    hws_arena_t *rest;    /* divides the other half of the window, whose pages have no memory at first */
    uint64_t rest_base;
    uint32_t *users; /* of each slab in `rest`, by its first page: blocks with memory; under users_lock */
} hws_device_memory_t;

static hws_device_memory_t memories[HWS_MAX_DEVICES];
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t keeper_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t keeper_wake = PTHREAD_COND_INITIALIZER;
static bool keeper_started;       /* under keeper_lock */
static _Atomic bool keeper_awake; /* changed under keeper_lock */

static uint64_t whole_pages(uint64_t bytes) {
    return (bytes + HWS_ARENA_PAGE_BYTES - 1) / HWS_ARENA_PAGE_BYTES * HWS_ARENA_PAGE_BYTES;
}

static int map(void *owner, uint64_t address, uint64_t bytes, bool last) {
    const hws_device_memory_t *memory = owner;
    const hws_quiet_t began = hws_quiet_begin();
    HWS_TRY(hws_call_hwsArenaMap(memory->ordinal, address, bytes, last));
    hws_quiet_keep(&began);
    return CUDA_SUCCESS;
}

static void unmap(void *owner, uint64_t address) {
    const hws_device_memory_t *memory = owner;
    const hws_quiet_t began = hws_quiet_begin();
    if (hws_call_hwsArenaUnmap(memory->ordinal, address) == CUDA_SUCCESS) { /* else the session is lost */
        hws_quiet_keep(&began);
    }
}

/* The slabs of `rest` get their memory from hws_device_memory_back(). */
static int map_nothing(void *owner, uint64_t address, uint64_t bytes, bool last) {
    (void) owner;
    (void) address;
    (void) bytes;
    (void) last;
    return CUDA_SUCCESS;
}

static void unmap_nothing(void *owner, uint64_t address) {
    (void) owner;
    (void) address;
}

static void open_rest(hws_device_memory_t *memory, uint64_t base, uint64_t bytes) {
    const hws_arena_owner_t owner = {.map = map_nothing, .unmap = unmap_nothing};
    memory->rest_base = base;
    memory->users = calloc(bytes / HWS_ARENA_PAGE_BYTES, sizeof *memory->users); /* committed when it is used */
    memory->rest = memory->users == NULL ? NULL : hws_arena_new(base, bytes, 0, &owner);
}

void hws_device_memory_open(CUdevice device, const hws_device_t *properties) {
    const HwsDeviceInfo *info = &properties->info;
    hws_device_memory_t *memory = &memories[device];
    if (info->arenaBytes == 0 || info->arenaBytes > HWS_ARENA_MAX_BYTES
        || (info->arenaAddress | info->arenaBytes) % HWS_ARENA_PAGE_BYTES != 0) {
        return;
    }
    const hws_arena_owner_t owner = {.map = map, .unmap = unmap, .owner = memory};
    memory->ordinal = properties->ordinal;
    memory->reports = info->arenaReports != 0;
    /* Keeps memory of this process away from the window: hws_interval_reserve() says why. */
    memory->is_reserved = hws_addresses_reserve(info->arenaAddress, info->arenaBytes);
    if (!memory->is_reserved) {
        hws_log(HWS_DEBUG, "the addresses of device memory are not all free in this process: %s", strerror(errno));
    }
    uint64_t bytes = memory->is_reserved ? whole_pages(info->arenaBytes / 2) : info->arenaBytes;
    memory->arena = hws_arena_new(info->arenaAddress, bytes, info->totalBytes / KEPT_SHARE, &owner);
    if (bytes < info->arenaBytes) {
        open_rest(memory, info->arenaAddress + bytes, info->arenaBytes - bytes);
    }
}

bool hws_device_memory_is_shared(CUdevice device) {
    return memories[device].arena != NULL && memories[device].is_reserved;
}

bool hws_device_memory_has_arena(CUdevice device) {
    return memories[device].arena != NULL;
}

/* Tells the worker about a block, where it must know. */
static CUresult report(const hws_device_memory_t *memory, uint64_t address, uint64_t bytes) {
    if (memory->reports) {
        const hws_quiet_t began = hws_quiet_begin();
        HWS_TRY(hws_call_hwsArenaAllocated(memory->ordinal, address, bytes));
        hws_quiet_keep(&began);
    }
    return CUDA_SUCCESS;
}

static void report_freed(const hws_device_memory_t *memory, uint64_t address, uint64_t bytes) {
    if (memory->reports) {
        const hws_quiet_t began = hws_quiet_begin();
        if (hws_call_hwsArenaFreed(memory->ordinal, address, bytes) == CUDA_SUCCESS) { /* else the session is lost */
            hws_quiet_keep(&began);
        }
    }
}

static CUresult allocate(hws_device_memory_t *memory, uint64_t bytes, uint64_t alignment, CUdeviceptr *address_p) {
    uint64_t address;
    HWS_TRY(hws_arena_allocate(memory->arena, bytes, alignment, &address));
    CUresult result = report(memory, address, bytes);
    if (result != CUDA_SUCCESS) {
        hws_arena_free(memory->arena, address, bytes);
        return result;
    }
    *address_p = address;
    return CUDA_SUCCESS;
}

CUresult hws_device_memory_allocate(CUdevice device, uint64_t bytes, CUdeviceptr *address_p) {
    hws_device_memory_t *memory = &memories[device];
    return memory->arena == NULL ? hws_call_cuMemAlloc_v2(address_p, bytes)
                                 : allocate(memory, bytes, HWS_ARENA_GRANULE_BYTES, address_p);
}

CUresult hws_device_memory_allocate_pages(CUdevice device, uint64_t bytes, CUdeviceptr *address_p) {
    if (hws_device_count() > 1 && !atomic_exchange(&memories[device].is_open, true)) {
        HWS_TRY(hws_call_hwsArenaShare(memories[device].ordinal));
    }
    return allocate(&memories[device], bytes, HWS_TRAP_PAGE_BYTES, address_p);
}

static uint64_t all_kept_bytes(void) {
    uint64_t bytes = 0;
    for (CUdevice device = 0; device < hws_device_count(); device++) {
        bytes += hws_device_memory_kept_bytes(device);
    }
    return bytes;
}

static void release_all(void) {
    for (CUdevice device = 0; device < hws_device_count(); device++) {
        hws_device_memory_release(device);
    }
}

static uint64_t all_changes(void) {
    uint64_t changes = 0;
    for (CUdevice device = 0; device < hws_device_count(); device++) {
        changes += memories[device].arena == NULL ? 0 : hws_arena_changes(memories[device].arena);
    }
    return changes;
}

/* Runs until the worker knows that no slab is kept. Returns an error when the session is lost. */
static CUresult keep_watch(void) {
    uint64_t seen = all_changes();
    for (int idle = 0;; idle++) {
        uint32_t wanted;
        if (idle == IDLE_LOOKS) {
            release_all();
        }
        uint64_t kept = all_kept_bytes();
        HWS_TRY(hws_call_hwsArenaKept(kept, &wanted));
        if (kept == 0) {
            return CUDA_SUCCESS;
        }
        if (wanted != 0) {
            release_all();
            continue; /* reports at once that nothing is left */
        }
        clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec) {.tv_nsec = LOOK_NS}, NULL);
        uint64_t changes = all_changes();
        if (changes != seen) {
            seen = changes;
            idle = 0;
        }
    }
}

static void *keeper_main(void *unused) {
    (void) unused;
    hws_tls.is_background = true;
    pthread_mutex_lock(&keeper_lock);
    for (;;) {
        while (!keeper_awake) {
            pthread_cond_wait(&keeper_wake, &keeper_lock);
        }
        pthread_mutex_unlock(&keeper_lock);
        if (keep_watch() != CUDA_SUCCESS) {
            return NULL; /* stays "awake": nothing wakes it again */
        }
        pthread_mutex_lock(&keeper_lock);
        keeper_awake = false;
        /* A slab may have been kept after the last report, by a thread that saw the keeper awake. */
        keeper_awake = all_kept_bytes() != 0;
    }
}

static void wake_keeper(void) {
    pthread_t thread;
    pthread_mutex_lock(&keeper_lock);
    keeper_awake = true;
    if (!keeper_started) {
        keeper_started = hws_thread_start(&thread, keeper_main, NULL, "hawser-memory") == 0;
    }
    pthread_cond_signal(&keeper_wake);
    bool started = keeper_started;
    pthread_mutex_unlock(&keeper_lock);
    if (!started) {
        release_all(); /* without the keeper, nothing is kept */
        keeper_awake = false;
    }
}

void hws_device_memory_free(CUdevice device, CUdeviceptr address, uint64_t bytes) {
    hws_device_memory_t *memory = &memories[device];
    report_freed(memory, address, bytes);
    hws_arena_free(memory->arena, address, bytes);
    if (!atomic_load(&keeper_awake) && hws_arena_kept_bytes(memory->arena) != 0) {
        wake_keeper();
    }
}

uint64_t hws_device_memory_kept_bytes(CUdevice device) {
    return memories[device].arena == NULL ? 0 : hws_arena_kept_bytes(memories[device].arena);
}

void hws_device_memory_release(CUdevice device) {
    if (memories[device].arena != NULL) {
        hws_arena_release(memories[device].arena);
    }
}

CUresult hws_device_memory_reserve(CUdevice device, uint64_t bytes, CUdeviceptr *address_p) {
    hws_arena_t *rest = memories[device].rest;
    uint64_t address;
    if (rest == NULL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    HWS_TRY(hws_arena_allocate(rest, bytes, HWS_TRAP_PAGE_BYTES, &address));
    *address_p = address;
    return CUDA_SUCCESS;
}

void hws_device_memory_unreserve(CUdevice device, CUdeviceptr address, uint64_t bytes) {
    hws_arena_free(memories[device].rest, address, bytes);
}

/* The slab of a block: as hws_arena.h places blocks. */
static uint64_t slab_of(CUdeviceptr address, uint64_t bytes, uint64_t *bytes_p) {
    *bytes_p = whole_pages(bytes);
    return bytes > HWS_ARENA_SMALL_BYTES ? address : address / HWS_ARENA_PAGE_BYTES * HWS_ARENA_PAGE_BYTES;
}

static CUresult map_slab(CUdevice device, uint64_t slab, uint64_t bytes) {
    hws_device_memory_t *memory = &memories[device];
    CUresult result = map(memory, slab, bytes, false);
    if (result != CUDA_ERROR_OUT_OF_MEMORY) {
        return result;
    }
    hws_arena_release(memory->arena);
    return map(memory, slab, bytes, true);
}

/* Ends a block's use of its slab. users_lock held. */
static void leave_slab(hws_device_memory_t *memory, uint64_t slab) {
    if (--memory->users[(slab - memory->rest_base) / HWS_ARENA_PAGE_BYTES] == 0) {
        unmap(memory, slab);
    }
}

CUresult hws_device_memory_back(CUdevice device, CUdeviceptr address, uint64_t bytes) {
    hws_device_memory_t *memory = &memories[device];
    uint64_t slab_bytes, slab = slab_of(address, bytes, &slab_bytes);
    pthread_mutex_lock(&users_lock);
    uint32_t *users = &memory->users[(slab - memory->rest_base) / HWS_ARENA_PAGE_BYTES];
    CUresult result = *users != 0 ? CUDA_SUCCESS : map_slab(device, slab, slab_bytes);
    if (result == CUDA_SUCCESS) {
        (*users)++;
        result = report(memory, address, bytes);
        if (result != CUDA_SUCCESS) {
            leave_slab(memory, slab);
        }
    }
    pthread_mutex_unlock(&users_lock);
    return result;
}

void hws_device_memory_unback(CUdevice device, CUdeviceptr address, uint64_t bytes) {
    uint64_t slab_bytes, slab = slab_of(address, bytes, &slab_bytes);
    pthread_mutex_lock(&users_lock);
    report_freed(&memories[device], address, bytes);
    leave_slab(&memories[device], slab);
    pthread_mutex_unlock(&users_lock);
}
