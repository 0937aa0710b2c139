/*
 * The memory that this process knows of: allocations on devices, module variables, host memory that is allocated or
 * registered as pinned. Answers which allocation an address lies in, without a round trip. There is a map of device
 * memory and one of host memory, because a device address is one of another process: it may be that of something else
 * here.
 */
#ifndef HWS_INTERVAL_H
#define HWS_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hws_memory {
    HWS_MEMORY_DEVICE = 1, /* cuMemAlloc and the like */
    HWS_MEMORY_POOL,       /* cuMemAllocAsync */
    HWS_MEMORY_GRAPH,      /* of an allocation node: known as long as its graph is */
    HWS_MEMORY_VARIABLE,   /* of a module */
    HWS_MEMORY_VIRTUAL,    /* cuMemMap: copies may go on from one into the next */
    HWS_MEMORY_OPENED,     /* another process's: cuIpcOpenMemHandle */
    HWS_MEMORY_MAPPED,     /* host memory, as devices see it */
    HWS_MEMORY_HOST,       /* cuMemHostAlloc */
    HWS_MEMORY_REGISTERED, /* cuMemHostRegister */
    HWS_MEMORY_MANAGED,    /* cuMemAllocManaged: host memory that devices see at the same address */
} hws_memory_t;

typedef enum hws_side { HWS_SIDE_DEVICE, HWS_SIDE_HOST } hws_side_t;

typedef struct hws_range {
    uint64_t base;
    uint64_t bytes;      /* at least 1 */
    hws_memory_t memory;
    uint64_t context;    /* handle of the context it belongs to */
    int device;
    unsigned flags;      /* as given when it was made */
    uint64_t owner;      /* the module or pool it belongs to, 0 for none */
    uint64_t id;         /* CU_POINTER_ATTRIBUTE_BUFFER_ID; given by insert */
    bool sync_memops;    /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
    bool shared;         /* host memory that lies in the region's heap */
    uint64_t twin;       /* host memory: where devices see it, mapped memory: where the host does; 0: nowhere */
} hws_range_t;

/*
 * Adds a range. False when it is empty, wraps round, overlaps another, or memory is short. Any thread, like all of
 * these.
 */
bool hws_interval_insert(const hws_range_t *range);

/* Takes out the range that starts at base. False when there is none. */
bool hws_interval_remove(hws_side_t side, uint64_t base, hws_range_t *range_p);

/* The range that the address lies in. */
bool hws_interval_find(hws_side_t side, uint64_t address, hws_range_t *range_p);

/*
 * Whether copies may touch these device bytes, at least 1: all inside one range, or inside mappings of cuMemMap that
 * lie end to end and to which a device has access (their flags are not 0).
 */
bool hws_interval_covers(uint64_t address, uint64_t bytes);

/* Changes the flag of the range that the address lies in. */
bool hws_interval_set_sync_memops(hws_side_t side, uint64_t address, bool value);

/* Replaces the flags of the range that starts at base, if there is one. */
void hws_interval_set_flags(hws_side_t side, uint64_t base, unsigned flags);

/* Takes out every device range of a module or pool (owner) or, when that is 0, of a context. */
void hws_interval_remove_all(uint64_t owner, uint64_t context);

/*
 * Keeps the host's memory away from a device range: reserves the addresses in this process, as far as they are free,
 * so that no later allocation of the program can have the number of a device address. For good: address space costs
 * nothing.
 */
void hws_interval_reserve(uint64_t base, uint64_t bytes);

static inline hws_side_t hws_memory_side(hws_memory_t memory) {
    return memory <= HWS_MEMORY_MAPPED ? HWS_SIDE_DEVICE : HWS_SIDE_HOST;
}

#endif
