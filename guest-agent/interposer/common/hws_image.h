/*
 * Device code images. CUDA passes them without a length, so this code derives it. An image is an ELF cubin, PTX text, a
 * fat binary, or the wrapper that nvcc puts around fat binaries. A wrapper of version 1 has one fat binary. A
 * wrapper of version 2 has a linked fat binary and a list of the parts that it needs.
 */
#ifndef HWS_IMAGE_H
#define HWS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No real image is near this size. The limit stops a wrong header from sending gigabytes of the program's memory. */
#define HWS_MAX_IMAGE_BYTES (1ull << 30)
/* Parts of a device-linked program; one for each source file. */
#define HWS_MAX_IMAGE_PARTS 4096

/*
 * Finds the size of one image that is not wrapped.
 *
 * @param image      the image, aligned or not.
 * @param available  bytes that may be read; SIZE_MAX where that is unknown, as for a plain pointer.
 * @param bytes_p    receives the size, at most HWS_MAX_IMAGE_BYTES and at most available. The size of PTX includes its
 *                   NUL, which is present.
 * @return false when it is no image, or is larger than `available`.
 */
bool hws_image_size(const void *image, size_t available, uint64_t *bytes_p);

/*
 * Unwraps the image or images that a program's pointer names.
 *
 * @param image     the argument of cuModuleLoadData or cuLibraryLoadData.
 * @param bytes_p   receives the length of the result.
 * @param copy_p    receives memory that the caller frees: several parts, one after the other, each at a multiple of 8;
 *                  NULL when the result lies in the program's own memory.
 * @return NULL when it is no image; *bytes_p is then 1 if memory was short, else 0.
 */
const void *hws_image_unwrap(const void *image, uint64_t *bytes_p, void **copy_p);

#endif
