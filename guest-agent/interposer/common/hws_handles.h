/*
 * Handles that a program holds: kind << 40 | id, never a pointer. The guest chooses the id, so that creating a stream
 * or an event needs no reply. It checks a handle without a round trip. An id consists of slot number and generation: a
 * destroyed handle stays invalid although its slot is used again.
 */
#ifndef HWS_HANDLES_H
#define HWS_HANDLES_H

#include "hws_cuda_types.h"

#include <stdbool.h>
#include <stdint.h>

#define HWS_HANDLE_KIND_SHIFT 40

/* Makes a valid handle. Returns 0 when a million of the kind are alive or memory is short. Any thread. */
uint64_t hws_handle_new(hws_kind_t kind);

/* Makes the handle invalid. Its attachment stays readable until its slot is used again, and is then freed. */
void hws_handle_drop(hws_kind_t kind, uint64_t handle);

/* Whether hws_handle_new() made the handle for this kind and it was not dropped. */
bool hws_handle_valid(hws_kind_t kind, uint64_t handle);

/* Attaches the guest's data to a handle. malloc made the data; the handle owns it from now on. */
void hws_handle_attach(hws_kind_t kind, uint64_t handle, void *data);

/* Returns the attachment; NULL for an invalid handle or one without attachment. */
void *hws_handle_data(hws_kind_t kind, uint64_t handle);

/* Calls `visit` for every valid handle of a kind, for instance to invalidate the handles of a context. */
void hws_handle_each(hws_kind_t kind, void (*visit)(uint64_t handle, void *data, void *argument), void *argument);

/* The default, legacy and per-thread streams are valid wherever a stream is. */
static inline bool hws_handle_legal(hws_kind_t kind, uint64_t handle) {
    return (kind == HWS_KIND_STREAM && handle <= 2) || hws_handle_valid(kind, handle);
}

#define HWS_CHECK_HANDLE(kind, handle)                                                                                 \
    do {                                                                                                               \
        if (__builtin_expect(!hws_handle_legal((kind), (uint64_t) (uintptr_t) (handle)), 0)) {                         \
            return (kind) == HWS_KIND_CONTEXT    ? CUDA_ERROR_INVALID_CONTEXT                                          \
                : (kind) == HWS_KIND_MEMORY_POOL ? CUDA_ERROR_INVALID_VALUE                                            \
                                                 : CUDA_ERROR_INVALID_HANDLE;                                          \
        }                                                                                                              \
    } while (0)

#endif
