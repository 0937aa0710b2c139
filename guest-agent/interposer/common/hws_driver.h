/* Included by every file of libcuda.so.1: the entry of a call, the state of the process, the export mark. */
#ifndef HWS_DRIVER_H
#define HWS_DRIVER_H

#include "hws_channel.h"
#include "hws_cuda_types.h"
#include "hws_handles.h"
#include "hws_log.h"
#include "hws_wire.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HWS_EXPORT __attribute__((visibility("default")))

/*
 * The result of the first check in each call: 0; CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child;
 * CUDA_ERROR_DEINITIALIZED once the process exits; the error of a lost session.
 */
extern _Atomic int hws_lifecycle;
/* The same, or the error of a kernel after which CUDA returns that error for all further work. */
extern _Atomic int hws_gate;

/* First line of every exported function that sends a record. */
#define HWS_ENTER()                                                                                                    \
    do {                                                                                                               \
        int hws_entered = atomic_load_explicit(&hws_gate, memory_order_relaxed);                                       \
        if (__builtin_expect(hws_entered != 0, 0)) {                                                                   \
            return (CUresult) hws_entered;                                                                             \
        }                                                                                                              \
    } while (0)

/* First line of a function that the guest answers itself, and that therefore works after a kernel has failed. */
#define HWS_ENTER_LOCAL()                                                                                              \
    do {                                                                                                               \
        int hws_entered = atomic_load_explicit(&hws_lifecycle, memory_order_relaxed);                                  \
        if (__builtin_expect(hws_entered != 0, 0)) {                                                                   \
            return (CUresult) hws_entered;                                                                             \
        }                                                                                                              \
    } while (0)

/* First line of a function that needs a current context, which CUDA checks before the error of a kernel. */
#define HWS_ENTER_CONTEXT()                                                                                            \
    do {                                                                                                               \
        if (__builtin_expect(hws_tls.context == 0, 0)) {                                                               \
            HWS_ENTER_LOCAL();                                                                                         \
            return CUDA_ERROR_INVALID_CONTEXT;                                                                         \
        }                                                                                                              \
        HWS_ENTER();                                                                                                   \
    } while (0)

/*
 * First line of a function of an object that belongs to a context: CUDA checks the handle before the context and before
 * the error of a kernel.
 */
#define HWS_ENTER_OBJECT(kind, handle)                                                                                 \
    do {                                                                                                               \
        HWS_ENTER_LOCAL();                                                                                             \
        HWS_CHECK_HANDLE((kind), (handle));                                                                            \
        HWS_ENTER();                                                                                                   \
    } while (0)

/* Returns an error to the caller. */
#define HWS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        CUresult hws_tried = (CUresult) (call);                                                                        \
        if (hws_tried != CUDA_SUCCESS) {                                                                               \
            return hws_tried;                                                                                          \
        }                                                                                                              \
    } while (0)

/* Returns CUDA_ERROR_INVALID_VALUE unless the condition holds. */
#define HWS_REQUIRE(condition)                                                                                         \
    do {                                                                                                               \
        if (__builtin_expect(!(condition), 0)) {                                                                       \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        }                                                                                                              \
    } while (0)

/* The stream of a _ptsz or _ptds variant: its default stream is the calling thread's own. */
#define HWS_PTSZ(stream) ((stream) == NULL ? CU_STREAM_PER_THREAD : (stream))

#define HWS_DRIVER_VERSION 13000 /* CUDA 13.0: the interface that the description covers */

/* Functions above common/ that a session calls. */
typedef struct hws_session_hooks {
    CUresult (*load_devices)(uint32_t count);                    /* once, during hws_session_start() */
    void (*run_callback)(uint64_t callback_id, int status);      /* on the thread of its lane */
    void (*event_reached)(uint64_t event_id, uint64_t sequence); /* as in hws_channel_hooks_t */
} hws_session_hooks_t;

/*
 * Connects to the broker and loads the devices, once in a process: cuInit. A failure writes one line to stderr; later
 * calls return the same error at once.
 */
CUresult hws_session_start(const hws_session_hooks_t *hooks);

/* Logs once that a function has no implementation. Returns CUDA_ERROR_NOT_SUPPORTED. */
CUresult hws_unsupported(const char *name);

/* Like hws_unsupported(), for one use of a function that has an implementation. `logged`: whether it was logged. */
CUresult hws_unsupported_use(_Atomic bool *logged, const char *what);

#endif
