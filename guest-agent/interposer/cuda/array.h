/* CUDA arrays in the guest: the parameters of their creation. The worker has their bytes. */
#ifndef HWS_ARRAY_H
#define HWS_ARRAY_H

#include "hws_driver.h"

typedef struct hws_array {
    CUDA_ARRAY3D_DESCRIPTOR descriptor; /* of a level: the level's own lengths */
    uint32_t element_bytes;             /* of all channels */
    bool level;                         /* belongs to a mipmapped array */
} hws_array_t;

/* The data of a valid array; NULL for another handle. Valid until the array is destroyed. */
static inline const hws_array_t *hws_array_get(CUarray array) {
    return hws_handle_data(HWS_KIND_ARRAY, (uint64_t) (uintptr_t) array);
}

/* The same for a mipmapped array: the data of its largest level. */
const hws_array_t *hws_mipmap_get(CUmipmappedArray mipmap);

/* Sets `kept` to an array's data, or leaves the calling function for an invalid handle. */
#define HWS_TAKE_ARRAY(kept, array)                                                                                    \
    const hws_array_t *kept = hws_array_get(array);                                                                    \
    if (__builtin_expect(kept == NULL, 0)) {                                                                           \
        return CUDA_ERROR_INVALID_HANDLE;                                                                              \
    }

/* Bytes of one channel of a format that arrays and textures may have; 0 for any other. */
uint32_t hws_array_channel_bytes(CUarray_format format);

/* Rows of a slice, and slices, of an array; 1 where the descriptor has 0. */
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
