/* Managed memory: blocks of the arena that the process sees at the same address. */
#ifndef HWS_MANAGED_H
#define HWS_MANAGED_H

#include "hws_driver.h"
#include "hws_interval.h"

/* Whether a device can have such memory: it has an arena, whose addresses are free in this process. */
bool hws_managed_is_possible(CUdevice device);

/*
 * Allocates managed memory of a device, 0 bytes excepted. `flags` is CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST, `owner`
 * the pool that counts the bytes, or 0.
 */
CUresult hws_managed_allocate(CUdevice device, uint64_t bytes, unsigned flags, uint64_t owner, CUdeviceptr *address_p);

/* Frees a block of an arena that no map has and no work uses any more: of cuMemAlloc, managed memory or a shadow. */
void hws_managed_free_block(const hws_range_t *range);

/* Enters and removes the advice for an allocation, none at its start. Returns false when memory is short. */
bool hws_advice_add(uint64_t base, uint64_t bytes);
void hws_advice_remove(uint64_t base);

/* Notes a prefetch. Returns false unless the bytes, at least 1, lie in one managed allocation. */
bool hws_advice_note_prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location);

/* Refuses a location that does not exist. */
CUresult hws_advice_check_location(CUmemLocation location);

/* A device's number, or CU_DEVICE_CPU, as a location. */
CUmemLocation hws_advice_location(CUdevice device);

#endif
