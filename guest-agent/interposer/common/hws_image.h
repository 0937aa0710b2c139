/*
 * Device code images. CUDA passes them without a length, so it is worked out: ELF cubin, PTX text, fat binary, and
 * the wrapper that nvcc puts around fat binaries (facts: version 1 has one, version 2 a linked one and a list of the
 * parts it needs).
 */
#ifndef HWS_IMAGE_H
#define HWS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No real image is near it: stops a wrong header from sending gigabytes of the program's memory. */
#define HWS_MAX_IMAGE_BYTES (1ull << 30)
/* Parts of a device-linked program; one a source file. */
#define HWS_MAX_IMAGE_PARTS 4096

/*
 * Size of one image that is not wrapped.
 *
 * @param image      the image, aligned or not.
 * @param available  bytes that may be read; SIZE_MAX where nobody knows, as behind a plain pointer.
 * @param bytes_p    receives the size, at most HWS_MAX_IMAGE_BYTES and at most available. PTX: with its
 *                   NUL, which is there.
 * @return false when it is no image, or does not fit what is available.
 */
bool hws_image_size(const void *image, size_t available, uint64_t *bytes_p);

/*
 * The image or images that a program's pointer means, unwrapped.
 *
 * @param image     as given to cuModuleLoadData or cuLibraryLoadData.
 * @param bytes_p   receives the length of what is returned.
 * @param copy_p    receives memory to free afterwards: several parts, one after the other, each at a multiple of 8;
 *                  NULL when the result lies in the program's own memory.
 * @return NULL when it is no image; *bytes_p is then 1 if memory was short, else 0.
 */
const void *hws_image_unwrap(const void *image, uint64_t *bytes_p, void **copy_p);

#endif
