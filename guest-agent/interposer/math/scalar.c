/* Numbers behind pointers, on host or device. */
#include "hws_math.h"

#include "hws_cublas_types.h"

#include <string.h>

void *hws_math_scalar(bool on_device, const void *pointer, uint64_t bytes, bool is_read, void *scalar,
                      uint64_t capacity) {
    HwsScalar *head = scalar; /* the longer structure begins alike */
    if (pointer == NULL || bytes == 0 || bytes > capacity) {
        return NULL;
    }
    head->valueBytes = (uint32_t) bytes;
    if (on_device) {
        head->onDevice = 1;
        head->address = (uintptr_t) pointer;
    } else if (is_read) {
        memcpy((char *) scalar + offsetof(HwsScalar, value), pointer, bytes);
    }
    return scalar;
}
