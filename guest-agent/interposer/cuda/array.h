/* CUDA arrays as the guest keeps them: what was asked for when one was made. Their bytes are the worker's. */
#ifndef HWS_ARRAY_H
#define HWS_ARRAY_H

#include "hws_driver.h"

typedef struct hws_array {
    CUDA_ARRAY3D_DESCRIPTOR descriptor; /* of a level: the level's own lengths */
    uint32_t element_bytes;             /* of all channels */
    bool level;                         /* belongs to a mipmapped array */
} hws_array_t;

/* What is kept about a valid array; NULL for another handle. Valid until the array is destroyed. */
static inline const hws_array_t *hws_array_get(CUarray array) {
    return hws_handle_data(HWS_KIND_ARRAY, (uint64_t) (uintptr_t) array);
}

/* What is kept about an array; leaves the calling function when the handle is none. */
#define HWS_TAKE_ARRAY(kept, array)                       \
    const hws_array_t *kept = hws_array_get(array);       \
    if (__builtin_expect(kept == NULL, 0)) {              \
        return CUDA_ERROR_INVALID_HANDLE;                 \
    }

/* Bytes of one channel of a format that arrays and textures may have here; 0 for another. */
uint32_t hws_array_channel_bytes(CUarray_format format);

/* Rows of a slice and slices of an array; 1 where the descriptor says 0. */
static inline uint64_t hws_array_rows(const hws_array_t *array) {
    return array->descriptor.Height == 0 ? 1 : array->descriptor.Height;
}

static inline uint64_t hws_array_slices(const hws_array_t *array) {
    return array->descriptor.Depth == 0 ? 1 : array->descriptor.Depth;
}

static inline uint64_t hws_array_width_bytes(const hws_array_t *array) {
    return array->descriptor.Width * array->element_bytes;
}

#endif
