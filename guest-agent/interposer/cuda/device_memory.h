/* Device memory of cuMemAlloc: blocks of the device's arena, or of the driver where the device has no arena. */
#ifndef HWS_DEVICE_MEMORY_H
#define HWS_DEVICE_MEMORY_H

#include "device.h"

#include "hws_driver.h"

/* Creates the arena of a device whose snapshot is complete. Once for a device, at the start of the session. */
void hws_device_memory_open(CUdevice device, const hws_device_t *properties);

/* Whether cuMemAlloc takes blocks of an arena on this device. */
bool hws_device_memory_has_arena(CUdevice device);

/* Whether it does, and this process has reserved the same addresses, so that it can mirror blocks. */
bool hws_device_memory_is_shared(CUdevice device);

/* Allocates a block of at least 1 byte. Any thread, as all functions below. Errors: as for cuMemAlloc. */
CUresult hws_device_memory_allocate(CUdevice device, uint64_t bytes, CUdeviceptr *address_p);

/* Allocates a block of an arena, of whole pages of HWS_TRAP_PAGE_BYTES, that begins at a page. */
CUresult hws_device_memory_allocate_pages(CUdevice device, uint64_t bytes, CUdeviceptr *address_p);

/*
 * Takes addresses for a block of whole pages of HWS_TRAP_PAGE_BYTES: the process has reserved them, and they have no
 * device memory. Errors: CUDA_ERROR_NOT_SUPPORTED unless hws_device_memory_is_shared(), CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult hws_device_memory_reserve(CUdevice device, uint64_t bytes, CUdeviceptr *address_p);

/* Gives them back. The process has left only their reservation, and they have no device memory. */
void hws_device_memory_unreserve(CUdevice device, CUdeviceptr address, uint64_t bytes);

/* Puts device memory behind the whole block. Its bytes have any value. Errors: as for cuMemAlloc. */
CUresult hws_device_memory_back(CUdevice device, CUdeviceptr address, uint64_t bytes);

/* Takes that memory away. No work uses it any more. */
void hws_device_memory_unback(CUdevice device, CUdeviceptr address, uint64_t bytes);

/* Frees a block of an arena that no work uses any more. */
void hws_device_memory_free(CUdevice device, CUdeviceptr address, uint64_t bytes);

/* Bytes of free slabs, which count as free memory of the device. */
uint64_t hws_device_memory_kept_bytes(CUdevice device);

/* Gives all free slabs of a device back. */
void hws_device_memory_release(CUdevice device);

#endif
