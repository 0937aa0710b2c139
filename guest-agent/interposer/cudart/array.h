/* Shared by arrays, textures and copies with arrays. A cudaArray_t is the driver's CUarray. */
#ifndef HWS_CUDART_ARRAY_H
#define HWS_CUDART_ARRAY_H

#include "runtime.h"

static inline CUarray hws_array_driver(cudaArray_const_t array) {
    return (CUarray) (uintptr_t) array;
}

/* The driver's format and number of channels for a channel descriptor; false when there is none. */
bool hws_array_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format_out, unsigned int *channels_out);

/* The channel descriptor of a driver's format. */
struct cudaChannelFormatDesc hws_array_channels(CUarray_format format, unsigned int channels);

/* Bytes of an element of an array; records nothing. */
cudaError_t hws_array_element(cudaArray_const_t array, size_t *bytes_out);

#endif
