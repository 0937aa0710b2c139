/*
 * The memory that this process knows: allocations on devices, module variables, host memory that is allocated or
 * registered as pinned. Finds the allocation of an address without a round trip. Device memory and host memory have one
 * map each. A device address belongs to the worker's process, so the same number may be in use here for something else.
 */
#ifndef HWS_INTERVAL_H
#define HWS_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hws_memory {
    HWS_MEMORY_DEVICE = 1, /* cuMemAlloc and the like */
    HWS_MEMORY_POOL,       /* cuMemAllocAsync */
    HWS_MEMORY_GRAPH,      /* of an allocation node: known as long as its graph exists */
    HWS_MEMORY_VARIABLE,   /* of a module */
    HWS_MEMORY_VIRTUAL,    /* cuMemMap: a copy may continue from one mapping into the next */
    HWS_MEMORY_OPENED,     /* of another process: cuIpcOpenMemHandle */
    HWS_MEMORY_MANAGED,    /* cuMemAllocManaged: device memory that the process sees at the same address */
    HWS_MEMORY_MAPPED,     /* host memory, at the address that devices see */
    HWS_MEMORY_HOST,       /* cuMemHostAlloc */
    HWS_MEMORY_REGISTERED, /* cuMemHostRegister */
} hws_memory_t;

typedef enum hws_side { HWS_SIDE_DEVICE, HWS_SIDE_HOST } hws_side_t;

typedef struct hws_range {
    uint64_t base;
    uint64_t bytes; /* at least 1 */
    hws_memory_t memory;
    uint64_t context; /* handle of its context */
    int device;
    unsigned flags;   /* as given at its creation */
    uint64_t owner;   /* its module or pool, 0 for none */
    uint64_t id;      /* CU_POINTER_ATTRIBUTE_BUFFER_ID; set by insert */
    bool sync_memops; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
    bool shared;      /* host memory that lies in the region's heap */
    bool arena;       /* at addresses of its device's arena */
    bool mirrored;    /* pinned memory whose bytes the device has: cuda/shadow.h */
    uint64_t twin;    /* host memory: its address on devices; mapped memory: its address on the host; 0: none */
} hws_range_t;

/*
 * Adds a range. Returns false when the range is empty, wraps, or overlaps another, or when memory is short. Any thread,
 * like all functions here.
 */
bool hws_interval_insert(const hws_range_t *range);

/* Removes the range that starts at base. Returns false when there is none. */
bool hws_interval_remove(hws_side_t side, uint64_t base, hws_range_t *range_p);

/* Finds the range that contains the address. */
bool hws_interval_find(hws_side_t side, uint64_t address, hws_range_t *range_p);

/*
 * Whether copies may touch these device bytes, at least 1. They must lie inside one range, or inside adjacent mappings
 * of cuMemMap to which a device has access (their flags are not 0).
 */
bool hws_interval_covers(uint64_t address, uint64_t bytes);

/* Whether the bytes, at least 1, lie in one range of managed memory. */
bool hws_interval_is_managed(uint64_t address, uint64_t bytes);

/* Whether the address lies in device memory that the process sees by mirrored pages. */
bool hws_interval_is_mirrored(uint64_t address);

/* Notes whether a device has the bytes of the host memory that starts at base, at the same address. */
void hws_interval_set_mirrored(uint64_t base, bool mirrored);

/* Changes the flag of the range that contains the address. */
bool hws_interval_set_sync_memops(hws_side_t side, uint64_t address, bool value);

/* Replaces the flags of the range that starts at base, if there is one. */
void hws_interval_set_flags(hws_side_t side, uint64_t base, unsigned flags);

/* Enters the pool of host memory that starts at base. */
void hws_interval_set_owner(hws_side_t side, uint64_t base, uint64_t owner);

/*
 * Removes every device range of a module or pool (owner), or, when owner is 0, of a context. Blocks of the arena stay,
 * because their owner still has to free them.
 */
void hws_interval_remove_all(uint64_t owner, uint64_t context);

/* Removes one block of the arena that belongs to the context. Returns false when there is none. */
bool hws_interval_take_block(uint64_t context, hws_range_t *range_p);

/*
 * Keeps host memory away from a device range: reserves those of its addresses that are free in this process. No later
 * allocation of the program can then have the number of a device address. The reservation is permanent; address space
 * costs nothing.
 */
void hws_interval_reserve(uint64_t base, uint64_t bytes);

static inline hws_side_t hws_memory_side(hws_memory_t memory) {
    return memory <= HWS_MEMORY_MAPPED ? HWS_SIDE_DEVICE : HWS_SIDE_HOST;
}

#endif
